"""Filters of the report pages: numbers as people read them."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotation.agreement.measures import TOO_FEW, Pairwise, Statistic
from annotation.agreement.page import MEASURES
from annotation.agreement.report import AgreementReport
from charts.downloads import Cell, Figure

register = template.Library()


@runtime_checkable
class ReportedValue(Protocol):
    """A value over `n` pairs or queries with its 95% interval, if any: a Statistic, or a mean of the benchmark."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...


register.filter("name", AgreementReport.name)


@register.filter
def places(value: float | None, digits: int) -> str:
    """Return a number with so many decimals and a minus sign; "" for None."""
    return "" if value is None else f"{value:.{digits}f}".replace("-", "−")


@register.filter
def percent(value: float | None) -> str:
    """Return a share as a percentage; a dash for None."""
    return "–" if value is None else f"{value:.0%}"


@register.filter
def points(value: float) -> str:
    """Return a share in percentage points, with one decimal below ten."""
    # 9.95 would round to 10.0, which is too wide for its column.
    return f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"


@register.filter
def tenths(value: float | None) -> str:
    """Return a share as a percentage with one decimal; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


@register.filter
def download_cell(cell: Cell) -> str:
    """Return a cell of a download table as pages show it: shares as percentages, counts with separators."""
    if isinstance(cell, Figure):
        return tenths(cell.value)
    return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


@register.filter
def span(statistic: ReportedValue) -> str:
    """Return the interval with two decimals; a dash for none."""
    return _format_interval(statistic, lambda value: places(value, 2))


@register.filter
def percent_span(statistic: ReportedValue) -> str:
    """Return the interval of a share as percentages with one decimal; a dash for none."""
    return _format_interval(statistic, tenths)


@register.filter
def few(statistic: ReportedValue | int | str | None, form: str = "") -> str | SafeString:
    """Qualify a figure of fewer than 30 values with its interval or as of too few; "" from 30 on.

    `statistic`: or the number of values alone; "" and None qualify nothing. `form`: "percent" for that of a share.
    """
    if not isinstance(statistic, ReportedValue | int) or (
        isinstance(statistic, ReportedValue) and statistic.value is None
    ):
        return ""
    n = statistic if isinstance(statistic, int) else statistic.n
    if n >= TOO_FEW:
        return ""
    if isinstance(statistic, int) or statistic.low is None or statistic.high is None:
        words = _("n = %(n)s, too few to say") % {"n": n}
    else:
        interval = percent_span(statistic) if form == "percent" else span(statistic)
        words = _("%(interval)s, n = %(n)s") % {"interval": interval, "n": n}
    return format_html(' <span class="muted small">{}</span>', words)


def _format_interval(statistic: ReportedValue, form: Callable[[float], str]) -> str:
    if statistic.low is None or statistic.high is None:
        return "–"
    return _("%(low)s to %(high)s") % {"low": form(statistic.low), "high": form(statistic.high)}


@register.filter
def values(pair: Pairwise) -> list[Statistic]:
    """Return the measures of two assessors, in the order of MEASURES."""
    return [getattr(pair, name) for name in MEASURES]


@register.filter
def translated_value(mapping: Mapping[str, str], key: str) -> str:
    """Return the translated value of a key."""
    return _(mapping[key])


@register.filter
def size(value: int) -> str:
    """Return a number of bytes with a unit; 1 kB has 1,000 bytes, as in file managers."""
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
