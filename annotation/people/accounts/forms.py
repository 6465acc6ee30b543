"""Forms of accounts: signing up, one's own mail address."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.utils.translation import gettext_lazy as _

from annotation.models import User


class MailForm(forms.Form):
    """The form for changing one's own email address; the password confirms it."""

    email = forms.EmailField(
        required=False, label=_("Email address"), help_text=_("Leave blank to reset your password without email.")
    )
    password = forms.CharField(
        label=_("Your password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        """Check the password, with the same count of tries as at the sign-in page."""
        password: str = self.cleaned_data["password"]
        if not get_adapter().reauthenticate(self.user, password):
            raise forms.ValidationError(_("The password is incorrect."))
        return password


class SignUpForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """User name and password of somebody who was invited."""

    class Meta:
        model = User
        fields = ("username",)

    def clean_username(self) -> str:
        """Refuse a name that is taken in any case: Alice and alice would sign in as one another."""
        username = str(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError(_("This user name is taken. Choose another one, or sign in if it is yours."))
        return username
