"""Pages of a person's access tokens: list, create, revoke."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import show_refusal
from annotation.access.permissions import SiteScope, action
from annotation.models import User
from api.models import AccessToken
from api.tokens import LONGEST_DAYS, current_tokens, make_token, revoke_token
from corpus.errors import BadInput
from corpus.models import Collection


class TokenForm(forms.Form):
    """Form of a new access token: its name, collection, scopes and days of validity."""

    token_name = forms.CharField(
        max_length=100,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Where you will use it, for example: notebook."),
    )
    collection = forms.ModelChoiceField(
        Collection.objects.none(),
        required=False,
        to_field_name="name",
        label=gettext_lazy("Collection"),
        empty_label=gettext_lazy("All my collections"),
    )
    scopes = forms.MultipleChoiceField(
        choices=AccessToken.TokenScope.choices,
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy("A token can never do more than your role allows."),
        widget=forms.CheckboxSelectMultiple,
        initial=[AccessToken.TokenScope.READ],
    )
    days = forms.IntegerField(label=gettext_lazy("Valid for (days)"), min_value=1, max_value=LONGEST_DAYS, initial=90)

    def __init__(self, *args: object, user: User, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        rows = Collection.objects.order_by("name")
        # Owners may access all collections without being members.
        collections = rows if user.is_owner else rows.filter(memberships__user=user, memberships__is_active=True)
        self.fields["collection"].queryset = collections  # type: ignore[attr-defined]


@action("site", "GET", "POST")
def tokens(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show valid tokens and the form of a new one; a POST creates it and shows it once."""
    form = TokenForm(request.POST or None, user=scope.user)
    token = ""
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        details = {"name": fields["token_name"], "scopes": fields["scopes"], "days": fields["days"]}
        try:
            _row, token = make_token(scope.user, fields["collection"], **details)
        except BadInput as error:
            show_refusal(form, error)
    # No redirect: the token is not stored, so only this response can show it.
    context = {
        "scope": scope,
        "form": TokenForm(user=scope.user) if token else form,
        "made": token,
        "tokens": current_tokens(scope.user).select_related("collection").order_by("-pk"),
    }
    status = 422 if request.method == "POST" and not token else 200
    return render(request, "api/tokens.html", context, status=status)


@action("site", "POST")
def revoke(request: HttpRequest, scope: SiteScope, token: int) -> HttpResponse:
    """Revoke one of the person's tokens."""
    row = get_object_or_404(AccessToken, pk=token, user=scope.user)
    revoke_token(row)
    messages.success(request, _("Token “%(name)s” revoked.") % {"name": row.name})
    return redirect("tokens")
