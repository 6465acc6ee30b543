"""Forms of the account page."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import User


class MailForm(forms.Form):
    """One's own mail address, confirmed by the password."""

    email = forms.EmailField(required=False, label=_("Mail address"), help_text=_("Empty: no link by mail."))
    password = forms.CharField(
        label=_("Your password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        """The same count of tries as at the sign-in page."""
        password: str = self.cleaned_data["password"]
        if not get_adapter().reauthenticate(self.user, password):
            raise forms.ValidationError(_("This is not your password."))
        return password
