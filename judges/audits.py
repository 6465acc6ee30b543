"""The audit of automatic labels: how strata are formed and pairs drawn (MECHANICS M4, SPEC S3). Pure.

A stratum is a route: how the policy came to its label. A pair is drawn at labelling time, before any person sees it,
by a hash of the collection's seed and the pair, so that the same pair is drawn again in a later campaign and people's
blind answers serve once more. The probability is kept for a whole campaign: within a stratum every pair has the same.
"""

from dataclasses import dataclass
from hashlib import sha256
from math import lgamma, log

from django.utils.translation import gettext as _

from corpus.phrases import gettext_noop

LEAST = 60
"""Audited pairs that a stratum is expected to have at least, where it is large enough."""

SPECIAL = {
    "filter": gettext_noop("dropped by the filter"),
    "adjudicator": gettext_noop("settled by the adjudicating judge"),
}
"""Ways to a label that leave the usual one, in words."""

OVERLAP = 2
"""People who judge an audited pair."""

LIMIT = 0.1
"""Share of wrong labels that a route may have; beyond it, it is alarmed and stops."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Route:
    """How a pair came to its label. `round`: in which the debate agreed, 0 without; `margin`: votes for the label
    minus votes against it, 0 without votes.
    """

    round: int
    margin: int
    label: int
    special: str = ""
    """"filter": dropped by it; "adjudicator": a disagreement that a judge settled; else ""."""

    @property
    def key(self) -> str:
        """Short and stable: r1.m5.y, r0.m0.n.filter."""
        own = f"r{self.round}.m{self.margin}.{'y' if self.label else 'n'}"
        return f"{own}.{self.special}" if self.special else own

    @property
    def words(self) -> str:
        """For people."""
        parts = [_(SPECIAL[self.special])] if self.special else []
        parts += [_("agreed in round %(round)s") % {"round": self.round}] if self.round else []
        parts += [_("votes %(margin)s apart") % {"margin": self.margin}] if self.margin else []
        return ", ".join([*parts, _("relevant") if self.label else _("not relevant")])

    @property
    def expected_share(self) -> float:
        """Of a campaign's pairs, roughly, before anything is known: most debates agree at once, most votes are one.

        Only how many people are asked hangs on it; estimates weight by what was counted.
        """
        if self.special:
            return 0.1
        by_round = {0: 1.0, 1: 0.6, 2: 0.2}.get(self.round, 0.1)
        by_margin = 1.0 if not self.margin else 0.6 if self.margin >= 5 else 0.2 if self.margin >= 3 else 0.1
        return 0.5 * by_round * by_margin


def route_of(key: str) -> Route:
    """The route of a key. Raises ValueError for anything else."""
    round, margin, label, *special = key.split(".")
    if round[:1] != "r" or margin[:1] != "m" or label not in "yn" or special not in ([], *([one] for one in SPECIAL)):
        raise ValueError(f"not a route: {key}")
    return Route(int(round[1:]), int(margin[1:]), int(label == "y"), *special)


def probability(audit: float, pairs: int, route: Route) -> float:
    """max(audit, 60 / expected size), at most 1; 0 where audits are off (audit = 0)."""
    if audit <= 0:
        return 0.0
    expected = pairs * route.expected_share
    return min(1.0, max(audit, LEAST / expected if expected > 0 else 1.0))


def chance(seed: int, pair: int) -> float:
    """The pair's number in [0, 1): it is drawn where this is below the probability."""
    digest = sha256(f"audit:{seed}:{pair}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def surely_over(right: int, settled: int, limit: float = LIMIT, level: float = LEVEL) -> bool:
    """Whether a route is wrong more often than the limit, at a level that holds however often one looks.

    The beta-binomial mixture against a share of 1 - limit is a martingale: where the route is within its limit, it ever
    reaches 1 / (1 - level) with a probability of at most 1 - level (Ville's inequality).
    """
    if not settled or right >= (1 - limit) * settled:
        return False
    wrong = settled - right
    mixture = lgamma(right + 1) + lgamma(wrong + 1) - lgamma(settled + 2)
    return mixture - right * log(1 - limit) - wrong * log(limit) >= -log(1 - level)
