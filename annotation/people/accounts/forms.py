"""Forms of accounts: signing up, and changing the email address."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.utils.translation import gettext_lazy as _

from annotation.models import InboxMail, User


class MailForm(forms.Form):
    """The form for a user's own email address, confirmed by the password."""

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
        """Check the password; wrong ones count towards the limits of the sign-in page."""
        password: str = self.cleaned_data["password"]
        if not get_adapter().reauthenticate(self.user, password):
            raise forms.ValidationError(_("The password is incorrect."))
        return password


class InboxMailForm(forms.Form):
    """When a person gets mail about what is new in their collections."""

    inbox_mail = forms.ChoiceField(
        required=False,
        choices=InboxMail.choices,
        label=_("Send it"),
        widget=forms.Select,
    )


class SignUpForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """The user name and password of an invited person."""

    class Meta:
        model = User
        fields = ("username",)

    def clean_username(self) -> str:
        """Refuse a name that differs from an existing one only in case, because sign-in ignores case."""
        username = str(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError(_("This user name is taken. Choose another one, or sign in if it is yours."))
        return username


class FirstOwnerForm(SignUpForm):
    """The one-time token of a site without accounts, and the user name and password of its owner."""

    token = forms.CharField(
        label=_("One-time token"),
        max_length=200,
        help_text=_("Printed in the terminal by the command that started this site."),
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "autofocus": True, "class": "mono"}
        ),
    )
    field_order = ("token", "username", "password1", "password2")
