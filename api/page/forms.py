"""The form of a new access token."""

from django import forms
from django.utils.translation import gettext_lazy

from annotation.models import User
from api.models import AccessToken
from api.tokens import LONGEST_DAYS
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
        # Owners of the site reach every collection without being a member.
        mine = rows if user.is_owner else rows.filter(memberships__user=user, memberships__is_active=True)
        self.fields["collection"].queryset = mine  # type: ignore[attr-defined]
