"""Filters of the training pages."""

from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from training.published.publication import base_name

register = template.Library()
REWARDS = {
    "rr": gettext_lazy("reciprocal rank (rr)"),
    "ndcg": gettext_lazy("nDCG of the rank (ndcg)"),
    "se": gettext_lazy("squared error to the teacher's score (se)"),
}


@register.filter
def basename(value: str) -> str:
    """Return the name of a base model without its path on the server."""
    return base_name(value).rpartition("/")[2] if value else _("a model that is not known")


@register.filter
def figure(value: float | None) -> str:
    """Return a value with three decimals, or "undefined"."""
    return f"{value:.3f}" if isinstance(value, int | float) else _("undefined")


@register.filter
def signed(value: float | None) -> str:
    """Return a value with its sign and three decimals, or "undefined"."""
    return f"{value:+.3f}" if isinstance(value, int | float) else _("undefined")


@register.filter
def chance(value: float) -> str:
    """Return a p value with three decimals."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


@register.filter
def ndcg(value: dict[str, Any]) -> str:
    """Return the nDCG@10 of a line of measures; templates cannot use the @ in its name."""
    return figure(value.get("ndcg@10"))


@register.filter
def reward_name(value: str) -> str:
    """Return the name of one of ERank's rewards, with its code."""
    return str(REWARDS.get(value, value))
