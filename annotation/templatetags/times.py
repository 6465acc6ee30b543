"""Filters for times, in every template (settings): each time that people read goes through one of them."""

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from corpus.reader_time import format_exact_time, format_time

register = template.Library()
register.filter("time_text", format_time)  # Where there can be no element, as in an <option>.


@register.filter
def moment(time: datetime | None, form: str = "SHORT_DATETIME_FORMAT") -> SafeString:
    """Return a <time> element in the reader's zone, whose title is the exact time with its zone; "" for None."""
    if time is None:
        return SafeString("")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        time.isoformat(timespec="seconds"), format_exact_time(time), format_time(time, form),
    )  # fmt: skip
