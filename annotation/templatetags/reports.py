"""Filters of the report pages: numbers as people read them."""

from collections.abc import Callable, Mapping

from django import template
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic
from annotation.agreement.page import MEASURES
from annotation.agreement.report import AgreementReport
from charts.downloads import Cell, Figure

register = template.Library()
register.filter("name", AgreementReport.name)


@register.filter
def places(value: float | None, digits: int) -> str:
    """A number with so many decimals and a real minus; empty for None."""
    return "" if value is None else f"{value:.{digits}f}".replace("-", "−")


@register.filter
def percent(value: float | None) -> str:
    """A share as a percentage; a dash for None."""
    return "–" if value is None else f"{value:.0%}"


@register.filter
def points(value: float) -> str:
    """A share as points of a percentage, to one decimal below ten."""
    # From 9.95 on one decimal would round to 10.0, which is wider than what stands beside it.
    return f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"


@register.filter
def tenths(value: float | None) -> str:
    """A share as a percentage with one decimal; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


@register.filter
def download_cell(cell: Cell) -> str:
    """A cell of a table to save as a page shows it: measured shares as percentages, counts with their thousands."""
    if isinstance(cell, Figure):
        return tenths(cell.value)
    return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


@register.filter
def span(statistic: Statistic) -> str:
    """The interval with two decimals, or a dash."""
    return _format_interval(statistic, lambda value: places(value, 2))


@register.filter
def percent_span(statistic: Statistic) -> str:
    """The interval of a share as percentages with one decimal, or a dash."""
    return _format_interval(statistic, tenths)


def _format_interval(statistic: Statistic, form: Callable[[float], str]) -> str:
    if statistic.low is None or statistic.high is None:
        return "–"
    return _("%(low)s to %(high)s") % {"low": form(statistic.low), "high": form(statistic.high)}


@register.filter
def values(pair: Pairwise) -> list[Statistic]:
    """The measures of two assessors, in the order of MEASURES."""
    return [getattr(pair, name) for name in MEASURES]


@register.filter
def translated_value(mapping: Mapping[str, str], key: str) -> str:
    """The value of a key."""
    return _(mapping[key])


@register.filter
def size(value: int) -> str:
    """Bytes as people read them."""
    # A kB has 1,000 bytes here, as file managers and disks count.
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
