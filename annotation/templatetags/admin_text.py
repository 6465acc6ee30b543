"""Filters of the admin pages."""

import re
from typing import Any

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotation.access.languages import translate_stored
from annotation.choice_labels import STATE_LABELS
from corpus.collections.task_order import BACK, FRONT
from corpus.labels import grade_label, name_grade
from corpus.models import Collection, Judgment
from corpus.search import text
from corpus.url_fetch.problems import describe_problem
from judges.costs.accounting import Paid, format_hours, format_price

register = template.Library()
register.filter("lang", text.detect_language)
register.filter("dir", text.text_direction)
register.filter("dollars", format_price)
register.filter("working_time", format_hours)
register.filter("fetch_problem", describe_problem)
_BLOCK = re.compile(r"\n[ \t]*\n")
_BULLET = re.compile(r"[-*•]\s+")
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")


@register.filter
def paragraphs(value: str) -> SafeString:
    """Return plain text as paragraphs and lists, escaped."""
    blocks = _BLOCK.split(value.replace("\r\n", "\n").strip())
    return render_to_string(
        "_prose.html", {"blocks": [_parse_block(block.split("\n")) for block in blocks if block.strip()]}
    )


def _parse_block(lines: list[str]) -> dict[str, Any]:
    """Parse a block into a paragraph or a list; a line without a marker continues the list item before it."""
    first = next((position for position, line in enumerate(lines) if _list_marker(line)), None)
    before = tuple(line.strip() for line in lines[:first])
    if first is None:
        return {"kind": "p", "lines": before, "heading": ""}
    items: list[str] = []
    for line in lines[first:]:
        if bullet := _list_marker(line):
            items.append(line.strip()[len(bullet) :])
        else:
            items[-1] += " " + line.strip()
    kind = "ol" if _NUMBER.match(lines[first].strip()) else "ul"
    return {"kind": kind, "lines": items, "heading": " ".join(before)}


def _list_marker(line: str) -> str:
    """Return the marker at the start of a list item; "" where the line is none."""
    marker = _BULLET.match(line.strip()) or _NUMBER.match(line.strip())
    return marker.group() if marker else ""


@register.filter
def choice_label(value: object) -> str:
    """Translate a word that is stored in English (annotation.choice_labels)."""
    return _(STATE_LABELS.get(str(value), str(value))) if value else ""


@register.filter
def in_reader_language(stored: str) -> str | SafeString:
    """Translate a text that a worker stored in English; mark it as English where there is no translation."""
    if not stored or get_language() in (None, settings.LANGUAGE_CODE):
        return stored
    return translate_stored(stored) or format_html('<span lang="en">{}</span>', stored)


@register.filter
def grade_of(value: int | str | None, scale: Collection | int) -> str:
    """Return a grade as number and label, "2 relevant"; "" for None. A grade from a JSON key is a string.

    `scale`: the collection, with its own names, or the highest grade (1 for verdicts).
    """
    if value is None:
        return ""
    if isinstance(scale, int):
        return name_grade(int(value), scale)
    return name_grade(int(value), scale.grades, scale.grade_names)


@register.filter
def describe_grade(value: int, collection: Collection) -> str:
    """Return only the label of a grade, to follow its number; "" for a scale without labels."""
    label = grade_label(value, collection.grades, collection.grade_names)
    return label if collection.grade_names else label.lower()


@register.filter
def marked_evidence(judgment: Judgment, document: str) -> list[str]:
    """Return the document's passages that the judgment's author marked as evidence, in order."""
    return [document[start:end] for start, end in judgment.spans or []]


@register.filter
def usd(value: float | None) -> str:
    """Return an amount as USD: cents from a dollar up, four decimals below; "unknown" for None."""
    if value is None:
        return _("unknown")
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:,.4f}"


@register.filter
def thousands(value: float | None) -> str:
    """Return a count with thousands separators; "" for None."""
    return "" if value is None else f"{round(value):,}"


@register.filter
def seconds(value: float | None) -> str:
    """Return milliseconds with a unit: below 100 as ms, else as seconds."""
    if value is None:
        return ""
    return _("%(value)s ms") % {"value": f"{value:.0f}"} if value < 100 else f"{value / 1000:,.1f} s"


@register.filter
def span_of_time(value: float) -> str:
    """Return seconds for an estimate in the largest unit of which there are two: 90 s, 12 min, 5 h, 3 days."""
    for size, words in ((172_800, _("%(value)s days")), (7_200, _("%(value)s h")), (120, _("%(value)s min"))):
        if value >= size:
            return words % {"value": f"{value / (size / 2):,.0f}"}
    return _("%(value)s s") % {"value": f"{max(1, round(value))}"}


@register.filter
def whole_seconds(value: float) -> str:
    """Return seconds of work without decimals: 12 s, under 1 s."""
    return _("%(value)s s") % {"value": f"{value:,.0f}"} if value >= 1 else _("under 1 s")


@register.filter
def paid(value: Paid | None) -> SafeString:
    """Return a cost: the sum in bold, then what is missing from it."""
    if value is None:
        return mark_safe("")
    amount = _("at least %(money)s") % {"money": usd(value.usd)} if value.at_least else usd(value.usd)
    note = format_html(' <span class="small muted">({})</span>', ", ".join(value.missing)) if value.missing else ""
    return format_html("<strong>{}</strong>{}", amount, note)


@register.filter
def queue_place(priority: float) -> str:
    """Return a task's priority as shown: front, back, or its number (the smallest comes first)."""
    if priority < FRONT / 2:
        return _("front")
    return _("back") if priority > BACK / 2 else f"{priority + 0:g}"  # -0.0 is 0
