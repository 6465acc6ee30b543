"""Filters of the benchmark's pages: figures as a paper prints them."""

from django import template
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def figure(value: float | None) -> str:
    """Print a value with four decimals; a dash for None."""
    return "–" if value is None else f"{value:.4f}".replace("-", "−")


@register.filter
def signed(value: float | None) -> str:
    """Print a change with its sign, and 0 without; a dash for None."""
    return "–" if value is None else f"{value:+.4f}".replace("-", "−") if value else "0.0000"


@register.filter
def whole(value: int | None) -> str:
    """Print a change of rank with its sign, and 0 without; a dash for None."""
    return "–" if value is None else f"{value:+d}".replace("-", "−") if value else "0"


@register.filter
def share(value: float | None) -> str:
    """Print a share as a percentage with one decimal; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


@register.filter
def chance(value: float | None) -> str:
    """Print a p value."""
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


@register.filter
def duration(value: float | None) -> str:
    """Print seconds as milliseconds or seconds."""
    if value is None:
        return _("unknown")
    if value < 1:
        return _("%(value)s ms") % {"value": f"{value * 1000:,.0f}" if value >= 0.01 else f"{value * 1000:.1f}"}
    return _("%(value)s s") % {"value": f"{value:,.1f}"}


@register.filter
def setting(value: object) -> object:
    """Print a value of a recipe; mappings and lists without brackets, mappings without what is empty."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {setting(part)}" for name, part in value.items() if part not in ("", None, [], {}))
    if isinstance(value, list):
        return "; ".join(str(setting(part)) for part in value)
    return value


@register.filter
def of(values: dict[str, object], key: str) -> object:
    """Return the value of a key in a mapping, or None."""
    return values.get(key)
