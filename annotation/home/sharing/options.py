"""Options of a read-only link: which page, under which title, and for how long."""

from typing import Any

from django.db.models import IntegerChoices
from django.utils.translation import gettext_lazy as _
from pydantic import field_validator

from actions.options import Options, option
from annotation.models.sharing import ShareLink


class Validity(IntegerChoices):
    """For how many days a link may be valid."""

    DAY = 1, _("1 day")
    WEEK = 7, _("7 days")
    MONTH = 30, _("30 days")
    QUARTER = 90, _("90 days")


class ShareOptions(Options):
    """What a read-only link shows, and for how long."""

    page: ShareLink.SharedPage = option(_("Page"))
    report: int | None = option(
        _("Report number"), _("For a link to a report. Empty: the newest report."), default=None, ge=1, lt=1 << 31
    )
    title: str = option(
        _("Title"), _("Heading for those who have the link. Empty: the page's name."), default="", at_most=200
    )
    days: Validity = option(_("Valid for"), default=Validity.MONTH)

    @field_validator("days", mode="before")
    @classmethod
    def read_days(cls, value: Any) -> Any:
        """Return the number that a form sends as text."""
        return int(value) if isinstance(value, str) and value.isdecimal() else value
