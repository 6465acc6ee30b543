"""Access tokens of a person: the list, a new one shown once, and revoking."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from actions.options import show_refusal
from annotation.permissions import SiteScope, action
from api.models import AccessToken
from api.page.forms import TokenForm
from api.tokens import current_tokens, make_token, revoke_token
from corpus.errors import BadInput


@action("site")
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the person's valid tokens and the form for a new one; a new token is shown once, in the answer."""
    form = TokenForm(request.POST or None, user=scope.user)
    made = ""
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        what = {"name": given["token_name"], "scopes": given["scopes"], "days": given["days"]}
        try:
            _row, made = make_token(scope.user, given["collection"], **what)
        except BadInput as error:
            show_refusal(form, error)
    # The token stands in the answer to the POST and not behind a redirect: it is kept nowhere to be read again.
    context = {
        "scope": scope,
        "form": TokenForm(user=scope.user) if made else form,
        "made": made,
        "tokens": current_tokens(scope.user).select_related("collection").order_by("-pk"),
    }
    status = 422 if request.method == "POST" and not made else 200
    return render(request, "api/tokens.html", context, status=status)


@action("site")
@require_POST
def revoke(request: HttpRequest, scope: SiteScope, token: int) -> HttpResponse:
    """End one of the person's own tokens."""
    row = get_object_or_404(AccessToken, pk=token, user=scope.user)
    revoke_token(row)
    messages.success(request, _("Token “%(name)s” revoked.") % {"name": row.name})
    return redirect("tokens")
