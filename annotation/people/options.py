"""Options of invitations: a link for each person, or a reusable link for several people."""

import re
from datetime import date, timedelta
from typing import Any, Literal

from django.core.validators import ProhibitNullCharactersValidator
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import field_validator

from actions.errors import BadOption
from actions.options import Options, option
from annotation.models import Role
from annotation.people.accounts.invitations import is_mail_address

AT_ONCE = 200
NAME_LENGTH = 200
LINK_DAYS = 365
RoleName = Literal["viewer", "annotator", "adjudicator", "admin"]


class RoleOptions(Options):
    """The role of the new member."""

    role: RoleName = option(
        gettext_lazy("Role"), default="annotator", choices={role.name.lower(): role.label for role in Role}
    )

    @property
    def rank(self) -> Role:
        """Return the role as memberships store it."""
        return Role[self.role.upper()]


class InvitationOptions(RoleOptions):
    """Whom to invite: a link for each name. Where the site sends mail, names that are addresses get it by mail."""

    people: tuple[str, ...] = option(
        gettext_lazy("Names or email addresses"), gettext_lazy("One per line, or separated by commas."), long=True
    )
    days: int = option(gettext_lazy("Valid for (days)"), default=14, ge=1, le=90)

    @field_validator("people", mode="before")
    @classmethod
    def split_lines(cls, value: Any) -> Any:
        """Split lines into names. Raises BadOption with the line of the first wrong name."""
        names: dict[str, str] = {}
        for number, line in enumerate(value.splitlines() if isinstance(value, str) else value, start=1):
            for name in filter(None, (" ".join(part.split()) for part in re.split(r"[,;]", str(line)))):
                problem = ""
                if "\0" in name:
                    problem = str(ProhibitNullCharactersValidator.message)
                elif len(name) > NAME_LENGTH:
                    problem = _("a name has at most %(limit)s characters.") % {"limit": NAME_LENGTH}
                elif "@" in name and not is_mail_address(name):
                    problem = _("“%(name)s” is not an email address.") % {"name": name}
                # Alice and alice would be taken for the same person.
                elif name.casefold() in names:
                    problem = _("“%(name)s” appears twice.") % {"name": name}
                if problem:
                    message = _("Line %(number)s: %(problem)s")
                    raise BadOption("people", message % {"number": number, "problem": problem})
                names[name.casefold()] = name
        if not names:
            raise BadOption("people", _("Enter at least one name or email address."))
        if len(names) > AT_ONCE:
            message = _("%(count)s people are too many at once. Invite at most %(limit)s, or make a reusable link.")
            raise BadOption("people", message % {"count": len(names), "limit": AT_ONCE})
        return tuple(names.values())


class ReusableLinkOptions(RoleOptions):
    """A link that several people use: how many, and until when."""

    note: str = option(
        gettext_lazy("Label"),
        gettext_lazy("For your own reference, for example “Spring course”."),
        default="",
        at_most=NAME_LENGTH,
    )
    limit: int = option(gettext_lazy("Maximum uses"), default=20, ge=2, le=10_000)
    last_day: date = option(gettext_lazy("Last day"))

    @field_validator("note")
    @classmethod
    def refuse_null(cls, note: str) -> str:
        """Refuse null characters, which PostgreSQL cannot store."""
        if "\0" in note:
            raise BadOption("note", ProhibitNullCharactersValidator.message)
        return note

    @field_validator("last_day")
    @classmethod
    def refuse_far_days(cls, day: date) -> date:
        """Refuse a day in the past or more than a year away."""
        today = timezone.localdate()
        if not today <= day <= today + timedelta(days=LINK_DAYS):
            raise BadOption("last_day", _("Choose a day within the next year."))
        return day


class LimitOptions(Options):
    """How much a member is to judge, and until when; an empty field removes the limit."""

    daily_quota: int | None = option(
        gettext_lazy("Pairs a day"),
        gettext_lazy("After so many pairs they get no more on that day. A comparison counts as a pair."),
        default=None,
        ge=1,
        le=100_000,
        clears=True,
    )
    total_quota: int | None = option(
        gettext_lazy("Pairs in total"),
        gettext_lazy("Counts all their judgments and comparisons in this collection, checks and test included."),
        default=None,
        ge=1,
        le=10_000_000,
        clears=True,
    )
    last_day: date | None = option(
        gettext_lazy("Last day"),
        gettext_lazy("After it they get no new pairs, but can finish the ones they have."),
        default=None,
        clears=True,
    )
