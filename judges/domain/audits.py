"""The audit of automatic labels: how strata are formed and pairs drawn. Pure.

A stratum is a route: how the policy came to its label. Every pair has a number, a hash of the collection's seed and the
pair. At labelling time, before any person sees it, a pair is drawn where its number is below the share asked for. When
the campaign ends, the sample is filled up to its size: in each route the pairs with the smallest numbers. Those that
were drawn already are the smallest, so the sample of a route is a simple random one, and every pair of a route is in it
with the same probability. The same numbers serve in a later campaign, and people's blind answers once more.

Pairs that join a campaign after its end are another part of it: a sample of their own is drawn from
each route, with its own probability. So a stratum is a route within a part, and an estimate weights
each by its size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, lgamma, log, sqrt

from django.utils.translation import gettext as _

from charts.translation import gettext_noop

LEAST = 30  # Audited pairs of a campaign at least, where it labelled so many.
HALF_WIDTH = 0.05  # Half the width of an interval that tells enough: plus and minus five points.
USUAL = (19.0, 20.0)  # What a route is taken to be before anything is settled: 19 right of 20.

# Ways to a label that leave the usual one, in words.
SPECIAL = {
    "filter": gettext_noop("rejected by the filter"),
    "adjudicator": gettext_noop("resolved by the adjudicating judge"),
}

OVERLAP = 2  # People who judge an audited pair.
LIMIT = 0.1  # Share of wrong labels that a route may have; beyond it, it is alarmed and stops.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Route:
    """Way in which a pair came to its label."""

    round: int  # In which the debate agreed; 0 without one.
    margin: int  # Votes for the label minus votes against it; 0 without votes.
    label: int
    special: str = ""  # "filter": dropped by it; "adjudicator": a disagreement that a judge settled; else "".

    @property
    def key(self) -> str:
        """The route in short, as it is stored: r1.m5.y, r0.m0.n.filter."""
        own = f"r{self.round}.m{self.margin}.{'y' if self.label else 'n'}"
        return f"{own}.{self.special}" if self.special else own

    @property
    def description(self) -> str:
        """The route in words."""
        parts = [_(SPECIAL[self.special])] if self.special else []
        parts += [_("agreed in round %(round)s") % {"round": self.round}] if self.round else []
        parts += [_("votes %(margin)s apart") % {"margin": self.margin}] if self.margin else []
        words = " · ".join([*parts, _("relevant") if self.label else _("not relevant")])
        return words[:1].upper() + words[1:]

    @property
    def risk(self) -> float:
        """Share of wrong labels, guessed: the more a label was disputed, the more."""
        # Only which pairs people are asked about hangs on it; estimates weight by what was counted.
        by_round = {0: 0.05, 1: 0.05, 2: 0.1}.get(self.round, 0.15)
        by_margin = 0.05 if not self.margin or self.margin >= 5 else 0.1 if self.margin >= 3 else 0.2
        by_special = {"filter": 0.1, "adjudicator": 0.2}.get(self.special, 0.0)
        return max(by_round, by_margin, by_special)


def route_of(key: str) -> Route:
    """Return the route of a key. Raises ValueError for anything else."""
    round, margin, label, *special = key.split(".")
    if round[:1] != "r" or margin[:1] != "m" or label not in "yn" or special not in ([], *([one] for one in SPECIAL)):
        raise ValueError(f"not a route: {key}")
    return Route(int(round[1:]), int(margin[1:]), int(label == "y"), *special)


def audit_sample_size(audit: float, labelled: int, others: int = 0) -> int:
    """Return how many labelled pairs of a campaign to audit: the share, and at least 30 of the whole collection.

    `others`: labelled pairs of the collection that are not this campaign's; they take their part of the 30.
    """
    if audit <= 0 or not labelled:
        return 0
    least = LEAST * labelled / (labelled + others)
    return min(labelled, ceil(max(audit * labelled, least) - 1e-9))


def allocate_sample(sizes: Mapping[str, int], wanted: int, drawn: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how many pairs of each stratum are in a sample of `wanted`, by size and risk (Neyman's allocation).

    A stratum is a route's key, or that with "/" and the number of a part. None gets fewer than are
    `drawn` of it, or more than it has. Each has one at least while there are enough: the largest
    first.
    """
    drawn = drawn or {}
    found = {key: min(size, drawn.get(key, 0)) for key, size in sizes.items()}
    risks = {key: route_of(key.partition("/")[0]).risk for key in sizes}
    weight = {key: size * sqrt(risks[key] * (1 - risks[key])) for key, size in sizes.items()}
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        if sum(found.values()) < wanted and not found[key] and sizes[key]:
            found[key] = 1
    while sum(found.values()) < wanted:
        open_routes = [key for key, size in sizes.items() if found[key] < size]
        if not open_routes:
            break
        # The one that is furthest below its share, as the divisor method of Webster has it.
        found[max(open_routes, key=lambda key: (weight[key] / (2 * found[key] + 1), key))] += 1
    return found


def uniform_draw(seed: int, pair: int) -> float:
    """Return the pair's number in [0, 1): it is drawn where this is below the probability."""
    digest = sha256(f"audit:{seed}:{pair}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def surely_over(right: int, settled: int, limit: float = LIMIT, level: float = LEVEL) -> bool:
    """Return whether a route is wrong more often than `limit`, tested so that repeated looks do not raise the error."""
    # The beta-binomial mixture against a share of 1 - limit is a martingale: where the route is
    # within its limit, it ever reaches 1 / (1 - level) with a probability of at most 1 - level
    # (Ville's inequality).
    if not settled or right >= (1 - limit) * settled:
        return False
    wrong = settled - right
    mixture = lgamma(right + 1) + lgamma(wrong + 1) - lgamma(settled + 2)
    return mixture - right * log(1 - limit) - wrong * log(limit) >= -log(1 - level)
