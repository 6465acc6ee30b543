"""Money whose parts may be unknown: a call without a price is said, and never counted as 0. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def money(usd: float | None) -> str:
    """Dollars, or that nobody knows."""
    if usd is None:
        return _("unknown cost")
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.5f}"


@dataclass(frozen=True, slots=True)
class Paid:
    """`usd`: the sum of what is known, None where nothing is. `missing`: what is not in it, in words."""

    usd: float | None
    missing: tuple[str, ...] = ()

    @property
    def at_least(self) -> bool:
        """More was paid than is known."""
        return self.usd is not None and bool(self.missing)

    @property
    def short(self) -> str:
        """Without what is not in it."""
        if self.usd is None:
            return _("unknown")
        return _("at least %(money)s") % {"money": money(self.usd)} if self.missing else money(self.usd)

    @property
    def text(self) -> str:
        """$1.20; at least $1.20 (5 calls without a price); unknown (5 calls without a price)."""
        return f"{self.short} ({', '.join(self.missing)})" if self.missing else self.short

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: "Paid") -> "Paid":
        known = [one.usd for one in (self, other) if one.usd is not None]
        return Paid(sum(known) if known else None, self.missing + other.missing)


NOTHING = Paid(0.0)


def of_calls(usd: float | None, calls: int, unpriced: int) -> Paid:
    """What `calls` calls cost: `usd` together, but for `unpriced` of them, whose price nobody knows."""
    if not unpriced:
        return Paid(usd or 0.0)
    words = ngettext("%(count)s call without a price", "%(count)s calls without a price", unpriced)
    missing = words % {"count": f"{unpriced:,}"}
    return Paid(None if unpriced >= calls else usd or 0.0, (missing,))


def total(parts: Iterable[Paid]) -> Paid:
    """All of them together."""
    found = NOTHING
    for part in parts:
        found = found + part
    return found
