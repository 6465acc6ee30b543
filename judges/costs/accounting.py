"""Amounts of money that may be partly unknown: a call without a price never counts as 0. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def format_cost(usd: float | None) -> str:
    if usd is None:
        return _("unknown cost")
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.5f}"


def format_price(price: float | None) -> str:
    """Format a price of a million tokens with all its digits; "" for none."""
    return "" if price is None else f"${price:.6f}".rstrip("0").rstrip(".")


def format_hours(hours: float) -> str:
    """Format working time: below an hour in minutes, below a minute in seconds, at least one where anybody worked.

    >>> [format_hours(hours) for hours in (0, 0.0001, 0.01, 0.05, 0.995, 12.34)]
    ['0 min', '1 s', '36 s', '3 min', '1.0 h', '12.3 h']
    """
    if 0 < (seconds := round(hours * 3600, 6)) < 59.5:
        return _("%(value)s s") % {"value": max(1, round(seconds))}
    minutes = round(hours * 60)
    if minutes < 60:
        return _("%(value)s min") % {"value": minutes}
    return _("%(value)s h") % {"value": f"{max(hours, 1):,.1f}"}


@dataclass(frozen=True, slots=True)
class Paid:
    """An amount: the sum of the known costs, None if none is known, and a description of what is missing from it."""

    usd: float | None
    missing: tuple[str, ...] = ()

    @property
    def at_least(self) -> bool:
        """True if some of the calls have no known price, so that the sum is a lower bound."""
        return self.usd is not None and bool(self.missing)

    @property
    def short(self) -> str:
        """The amount without the list of what is missing."""
        if self.usd is None:
            return _("unknown")
        return _("at least %(money)s") % {"money": format_cost(self.usd)} if self.missing else format_cost(self.usd)

    @property
    def text(self) -> str:
        """The amount in words: $1.20; at least $1.20 (5 calls without a price); unknown (5 calls ...)."""
        return f"{self.short} ({', '.join(self.missing)})" if self.missing else self.short

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: "Paid") -> "Paid":
        amounts = [paid.usd for paid in (self, other) if paid.usd is not None]
        return Paid(sum(amounts) if amounts else None, self.missing + other.missing)


def of_calls(usd: float | None, calls: int, unknown: int, assumed: int = 0, assumed_usd: float = 0.0) -> Paid:
    """Return the cost of `calls` calls: `usd` for all but `unknown` of them.

    Of the unknown ones, `assumed` calls can have cost at most `assumed_usd`, which counts against budgets.
    """
    if not unknown:
        return Paid(usd or 0.0)
    missing = []
    if unpriced := unknown - assumed:
        words = ngettext("%(count)s call without a price", "%(count)s calls without a price", unpriced)
        missing.append(words % {"count": f"{unpriced:,}"})
    if assumed:
        words = ngettext(
            "%(count)s call of unknown cost, counted as %(most)s",
            "%(count)s calls of unknown cost, counted as %(most)s",
            assumed,
        )
        missing.append(words % {"count": f"{assumed:,}", "most": format_cost(assumed_usd)})
    return Paid(None if unknown >= calls else usd or 0.0, tuple(missing))


def of_status(status: Mapping[str, Any]) -> Paid:
    """Return the cost of the calls in a campaign's status document."""
    values = [status[key] for key in ("cost", "calls", "calls_without_price", "calls_assumed", "cost_assumed")]
    paid = of_calls(*values)
    if not (possible := status.get("calls_possible", 0)):
        return paid
    words = ngettext(
        "%(count)s call that a lost machine may have made, counted as %(most)s",
        "%(count)s calls that a lost machine may have made, counted as %(most)s",
        possible,
    )
    most = format_cost(status["cost_possible"])
    return Paid(paid.usd, (*paid.missing, words % {"count": f"{possible:,}", "most": most}))


def describe_assumed_cost(status: Mapping[str, Any]) -> str:
    """Describe how much of a campaign's spending is assumed, to explain why it stopped; "" if nothing is.

    Always in English, since only commands print it.
    """
    count = status["calls_assumed"] + status.get("calls_possible", 0)
    most = status["cost_assumed"] + status.get("cost_possible", 0.0)
    if not count:
        return ""
    calls = "call" if count == 1 else "calls"
    return f" (including an estimated {format_cost(most)} for {count:,} {calls} of unknown cost)"
