"""Forms of the People page: invitations for many, a link that many use, roles."""

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.accounts.invitations import is_mail_address
from annotation.models import Role

AT_ONCE = 200
NAME_LENGTH = 200
LINK_DAYS = 365


def role_field() -> forms.TypedChoiceField:
    """The role with which somebody joins."""
    return forms.TypedChoiceField(
        label=gettext_lazy("Role"),
        choices=Role.choices,
        # Forms carry texts, and roles are compared as numbers.
        coerce=lambda value: Role(int(value)),
        initial=Role.ANNOTATOR,
    )


class InvitationForm(forms.Form):
    """The form that invites people: one name or address a line, and the role that they get."""

    people = forms.CharField(
        label=gettext_lazy("Names or email addresses"),
        help_text=gettext_lazy("One per line, or separated by commas."),
        widget=forms.Textarea(attrs={"rows": 4}),
        max_length=50_000,
    )
    role = role_field()
    days = forms.IntegerField(min_value=1, max_value=90, initial=14, label=gettext_lazy("Valid for (days)"))

    def clean_people(self) -> list[str]:
        """Return the names in order; the first wrong one is named with its line."""
        names: dict[str, str] = {}
        for number, line in enumerate(str(self.cleaned_data["people"]).splitlines(), start=1):
            for name in filter(None, (" ".join(part.split()) for part in re.split(r"[,;]", line))):
                problem = self._name_problem(name, names)
                if problem:
                    raise forms.ValidationError(
                        _("Line %(number)s: %(problem)s") % {"number": number, "problem": problem}
                    )
                # Whoever reads the list takes Alice and alice for one person.
                names[name.casefold()] = name
        if not names:
            raise forms.ValidationError(_("Enter at least one name or email address."))
        if len(names) > AT_ONCE:
            raise forms.ValidationError(
                _("%(count)s people are too many at once. Invite at most %(limit)s, or make a reusable link.")
                % {"count": len(names), "limit": AT_ONCE}
            )
        return list(names.values())

    @staticmethod
    def _name_problem(name: str, names: dict[str, str]) -> str:
        if len(name) > NAME_LENGTH:
            return _("a name has at most %(limit)s characters.") % {"limit": NAME_LENGTH}
        if "@" in name and not is_mail_address(name):
            return _("“%(name)s” is not an email address.") % {"name": name}
        if name.casefold() in names:
            return _("“%(name)s” appears twice.") % {"name": name}
        return ""


class ReusableLinkForm(forms.Form):
    """A link that several people use: how many, and until when."""

    note = forms.CharField(
        label=gettext_lazy("Label"),
        max_length=NAME_LENGTH,
        required=False,
        help_text=gettext_lazy("For your own reference, for example “Spring course”."),
        validators=[ProhibitNullCharactersValidator()],
    )
    role = role_field()
    limit = forms.IntegerField(min_value=2, max_value=10_000, initial=20, label=gettext_lazy("Maximum uses"))
    last_day = forms.DateField(
        label=gettext_lazy("Last day"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["last_day"].initial = timezone.localdate() + timedelta(days=14)

    def clean_last_day(self) -> Any:
        """Refuse a day that is over, or more than a year away."""
        day = self.cleaned_data["last_day"]
        today = timezone.localdate()
        if not today <= day <= today + timedelta(days=LINK_DAYS):
            raise forms.ValidationError(_("Choose a day within the next year."))
        return day


class RoleForm(forms.Form):
    """The form that changes a member's role."""

    role = role_field()
