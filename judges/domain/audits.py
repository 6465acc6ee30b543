"""The audit of automatic labels: how strata are formed and pairs drawn. Pure.

A stratum is a route: how the policy arrived at its label. Every pair has a number, a hash of the collection's seed and
the pair. When a pair is labelled, before any person sees it, it is drawn if its number is below the requested share.
When the campaign ends, the sample is filled up to its size with the pairs of each route that have the smallest numbers.
The pairs that were drawn earlier have the smallest numbers of all, so the sample of a route is a simple random one:
every pair of a route is in it with the same probability. A later campaign uses the same numbers, and with them the
blind answers that people have already given.

Pairs that join a campaign after its end form another part of it: a separate sample is drawn from each of its routes,
with its own probability. So a stratum is a route within a part, and an estimate weights each by its size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, lgamma, log, sqrt

from django.utils.translation import gettext as _

from charts.translation import gettext_noop

LEAST = 30  # Fewest audited pairs of a campaign that labelled that many.
HALF_WIDTH = 0.05  # Half the width of an interval that is narrow enough: plus or minus five points.
USUAL = (19.0, 20.0)  # Prior of a route before any audit is completed: 19 of 20 labels are correct.

# Routes other than the policy's own, in words.
SPECIAL = {
    "filter": gettext_noop("rejected by the filter"),
    "adjudicator": gettext_noop("resolved by the adjudicating judge"),
}

OVERLAP = 2  # People who judge an audited pair.
LIMIT = 0.1  # Share of wrong labels that a route may have; above it, an alarm is raised and the route stops.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Route:
    """Way in which a pair came to its label."""

    round: int  # Round in which the debate agreed; 0 without a debate.
    margin: int  # Votes for the label minus votes against it; 0 without votes.
    label: int
    special: str = ""  # "filter": dropped by it; "adjudicator": a disagreement that a judge resolved; else "".

    @property
    def key(self) -> str:
        """The stored abbreviation of the route: r1.m5.y, r0.m0.n.filter."""
        key = f"r{self.round}.m{self.margin}.{'y' if self.label else 'n'}"
        return f"{key}.{self.special}" if self.special else key

    def describe(self, voters: int = 0, stops_at: int = 0) -> str:
        """Return the route in words: "Round 1 · votes 5-0 · relevant".

        `voters`: size of the panel; 0 where it is not known, such as for panels of several campaigns. `stops_at`:
        the equal votes at which a panel stops early; 0 where all vote.
        """
        parts = [_(SPECIAL[self.special])] if self.special else []
        parts += [_("round %(round)s") % {"round": self.round}] if self.round else []
        if self.margin:
            # As if all had voted: where votes were not readable, an even number of them, one less on each side.
            votes = stops_at or (voters and (voters + self.margin) // 2)
            split = _("votes %(votes)s-%(against)s") if votes else _("votes %(margin)s apart")
            parts.append(split % {"votes": votes, "against": votes - self.margin, "margin": self.margin})
        words = " · ".join([*parts, _("relevant") if self.label else _("not relevant")])
        return words[:1].upper() + words[1:]

    @property
    def risk(self) -> float:
        """A guess at the share of wrong labels: the more a label was disputed, the higher."""
        # The guess decides only which pairs people are asked about; estimates weight by actual counts.
        by_round = {0: 0.05, 1: 0.05, 2: 0.1}.get(self.round, 0.15)
        by_margin = 0.05 if not self.margin or self.margin >= 5 else 0.1 if self.margin >= 3 else 0.2
        by_special = {"filter": 0.1, "adjudicator": 0.2}.get(self.special, 0.0)
        return max(by_round, by_margin, by_special)


def route_of(key: str) -> Route:
    """Return the route of a key. Raises ValueError if it is not a key."""
    round, margin, label, *special = key.split(".")
    is_known = not special or (len(special) == 1 and special[0] in SPECIAL)
    if round[:1] != "r" or margin[:1] != "m" or label not in "yn" or not is_known:
        raise ValueError(f"{key!r} is not a route.")
    return Route(int(round[1:]), int(margin[1:]), int(label == "y"), *special)


def audit_sample_size(audit: float, labelled: int, others: int = 0) -> int:
    """Return how many of a campaign's `labelled` pairs to audit: the share `audit`, and at least 30 per collection.

    `others`: labelled pairs of the collection that belong to other campaigns, which take their part of the 30.
    """
    if audit <= 0 or not labelled:
        return 0
    least = LEAST * labelled / (labelled + others)
    return min(labelled, ceil(max(audit * labelled, least) - 1e-9))


def allocate_sample(
    sizes: Mapping[str, int], sample_size: int, drawn: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return how many pairs of each stratum are in a sample of `sample_size`, by size and risk (Neyman's allocation).

    A stratum is a route's key, or the key with "/" and the number of a part. No stratum gets fewer pairs than were
    `drawn` from it, or more than it contains. Each gets at least one, the largest strata first, until the sample is
    full.
    """
    drawn = drawn or {}
    allocation = {key: min(size, drawn.get(key, 0)) for key, size in sizes.items()}
    risks = {key: route_of(key.partition("/")[0]).risk for key in sizes}
    weight = {key: size * sqrt(risks[key] * (1 - risks[key])) for key, size in sizes.items()}
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        if sum(allocation.values()) < sample_size and not allocation[key] and sizes[key]:
            allocation[key] = 1
    while sum(allocation.values()) < sample_size:
        open_routes = [key for key, size in sizes.items() if allocation[key] < size]
        if not open_routes:
            break
        # The stratum that is furthest below its share (Webster's divisor method).
        allocation[max(open_routes, key=lambda key: (weight[key] / (2 * allocation[key] + 1), key))] += 1
    return allocation


def uniform_draw(seed: int, pair: int) -> float:
    """Return the pair's number in [0, 1); the pair is drawn if the number is below the probability."""
    digest = sha256(f"audit:{seed}:{pair}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def surely_over(right: int, audited: int, limit: float = LIMIT, level: float = LEVEL) -> bool:
    """Return whether a route is wrong more often than `limit`, tested so that repeated looks do not raise the error."""
    # The ratio of a beta-binomial mixture to a share of 1 - limit is a martingale: if the route is within its
    # limit, the ratio ever reaches 1 / (1 - level) with a probability of at most 1 - level (Ville's inequality).
    if not audited or right >= (1 - limit) * audited:
        return False
    wrong = audited - right
    mixture = lgamma(right + 1) + lgamma(wrong + 1) - lgamma(audited + 2)
    return mixture - right * log(1 - limit) - wrong * log(limit) >= -log(1 - level)
