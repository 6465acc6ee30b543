"""Filters of the report pages: numbers as people read them."""

from collections.abc import Mapping

from django import template
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic
from annotation.agreement.page import MEASURES
from annotation.agreement.report import AgreementReport

register = template.Library()


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
    return f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"


@register.filter
def tenths(value: float | None) -> str:
    """A share as a percentage with one decimal; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


@register.filter
def tenths_span(statistic: Statistic) -> str:
    """The interval of a share as percentages with one decimal, or a dash."""
    if statistic.low is None or statistic.high is None:
        return "–"
    return _("%(low)s to %(high)s") % {"low": f"{statistic.low:.1%}", "high": f"{statistic.high:.1%}"}


@register.filter
def span(statistic: Statistic) -> str:
    """The interval, or a dash."""
    if statistic.low is None or statistic.high is None:
        return "–"
    return _("%(low)s to %(high)s") % {"low": places(statistic.low, 2), "high": places(statistic.high, 2)}


@register.filter
def values(pair: Pairwise) -> list[Statistic]:
    """The measures of two assessors, in the order of MEASURES."""
    return [getattr(pair, name) for name in MEASURES]


@register.filter
def name(report: AgreementReport, place: int) -> str:
    """The name of an assessor by place."""
    return report.name(place)


@register.filter
def translated_value(mapping: Mapping[str, str], key: str) -> str:
    """The value of a key."""
    return _(mapping[key])


@register.filter
def size(value: int) -> str:
    """Bytes as people read them."""
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
