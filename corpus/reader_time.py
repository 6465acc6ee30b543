"""Times as people read them: in the reader's own zone.

Requests of readers whose zone is known activate it (annotation.access.languages). For others the zone is the
site's (TIME_ZONE), which is then named beside each time. Files, the API and commands write UTC.
"""

from datetime import datetime

from django.utils import formats, timezone


def format_time(time: datetime, form: str = "SHORT_DATETIME_FORMAT") -> str:
    """Return a time by the name of a format (config/formats), with the zone's name unless the zone is the reader's."""
    local = timezone.localtime(time)
    text = formats.date_format(local, form)
    is_readers = timezone.get_current_timezone() is not timezone.get_default_timezone()
    # A date without a time of day needs no zone.
    return text if is_readers or "H" not in formats.get_format(form) else f"{text} {name_zone(local)}"


def name_zone(local: datetime) -> str:
    """Return the abbreviation of a time's zone and its offset: "CET (UTC+01:00)", "UTC+05:45", or "UTC"."""
    name, offset = local.tzname() or "", local.strftime("%z")
    offset = f"UTC{offset[:3]}:{offset[3:]}" if local.utcoffset() else "UTC"
    return offset if not name.isalpha() or name == "UTC" else f"{name} ({offset})"


def format_exact_time(time: datetime) -> str:
    """Return a time to the second, with its zone."""
    local = timezone.localtime(time)
    return f"{formats.date_format(local, 'SECONDS_FORMAT')} {name_zone(local)}"
