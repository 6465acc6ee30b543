"""Stored answers about a campaign's pairs: turns, votes, their costs, and what is known to be true. Pure.

Pairs that judges answered alike are decided alike under every policy, so they are kept together: a
million pairs are some thousand groups.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from judges.domain import ensemble
from judges.domain.debate import Turns
from judges.domain.stance_flip_guard import without_evidence
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Slot, Turn

# A slot, its verdict or how it was lost, and whether the agent changed sides without evidence.
Mark = tuple[str, int, int, int | str, bool]

LATENCIES = 400  # Pairs from which medians of latency are taken, spread over the campaign.


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Totals of calls, failed tries included."""

    calls: int = 0
    usd: float = 0.0  # Known prices alone.
    unpriced: int = 0  # Calls without one.
    milliseconds: int = 0

    def __add__(self, other: "CallTotals") -> "CallTotals":
        sums = (self.calls + other.calls, self.usd + other.usd, self.unpriced + other.unpriced)
        return CallTotals(*sums, self.milliseconds + other.milliseconds)

    @property
    def cost(self) -> float | None:
        """Return the cost in USD; None where a price is unknown."""
        return None if self.unpriced else self.usd


@dataclass(frozen=True, slots=True)
class ReferenceLabels:
    """A pair's truth, if known, beside answers: 1 relevant, 0 not, None unknown."""

    gold: int | None = None
    people: int | None = None
    # One over the probability that people were asked about the pair (escalated: 1, audited: p),
    # raised where some of those asked have not settled it; 0 where the pair is no part of that
    # sample.
    weight: float = 0.0


@dataclass(slots=True)
class StoredAnswers:
    """Stored answers about one pair. `adjudged`: an LLM adjudicator's verdict by the round after which it was asked."""

    pair: int
    turns: dict[tuple[int, DebateAgent], Turn | NoVerdict] = field(default_factory=dict)
    votes: dict[int, Turn | NoVerdict] = field(default_factory=dict)
    adjudged: dict[int, Turn | NoVerdict] = field(default_factory=dict)
    spent: dict[Slot, CallTotals] = field(default_factory=dict)
    truth: ReferenceLabels = ReferenceLabels()
    window: int = 0  # The one that decided, of a document judged in windows; 0: it was judged whole.
    # What each window that did not decide took, by its number.
    beside: dict[int, dict[Slot, CallTotals]] = field(default_factory=dict)

    def key(self) -> tuple[Mark, ...]:
        """Return a key that is equal for pairs that every policy decides alike."""
        changed = without_evidence(self.turns)
        marks = [
            (seat.side.value, round, seat.couple, _outcome_or_verdict(one), (round, seat) in changed)
            for (round, seat), one in self.turns.items()
        ]
        marks += [("vote", 0, place, _outcome_or_verdict(one), False) for place, one in self.votes.items()]
        marks += [("adjudicate", round, 0, _outcome_or_verdict(one), False) for round, one in self.adjudged.items()]
        return tuple(sorted(marks, key=lambda mark: mark[:3]))


def _outcome_or_verdict(one: Turn | NoVerdict) -> int | str:
    return one.outcome if isinstance(one, NoVerdict) else one.verdict


@dataclass(slots=True)
class AnswerGroup:
    """Pairs with the same answers; those of the first stand for all."""

    turns: Turns
    votes: Mapping[int, Turn | NoVerdict]
    adjudged: Mapping[int, Turn | NoVerdict]
    pairs: int = 0
    truths: Counter[ReferenceLabels] = field(default_factory=Counter)
    spent: dict[Slot, CallTotals] = field(default_factory=dict)
    beside: dict[Slot, CallTotals] = field(default_factory=dict)  # What windows that did not decide took.

    def count_votes(self) -> ensemble.Count:
        """Count the votes for yes and for no; those without a verdict count for neither."""
        return ensemble.count_votes(None if isinstance(one, NoVerdict) else one.verdict for one in self.votes.values())


@dataclass(slots=True)
class Gathered:
    """All pairs of a campaign that judges brought to an end."""

    groups: list[AnswerGroup] = field(default_factory=list)
    # Pairs from which medians are taken, and the group of each.
    samples: list[tuple[AnswerGroup, StoredAnswers]] = field(default_factory=list)
    windowed: int = 0  # Pairs that were judged window by window.
    # By place on the panel, in the order of the pairs: P(yes), P(no), the reference grade, and what the vote took.
    beliefs: dict[int, list[tuple[float, float, int | None, CallTotals]]] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return sum(group.pairs for group in self.groups)

    def measured(self, reference: str) -> int:
        """Pairs whose truth is known by `gold`, or by `people`."""
        return sum(
            pairs
            for group in self.groups
            for truth, pairs in group.truths.items()
            if (truth.gold is not None if reference == "gold" else truth.people is not None and truth.weight > 0)
        )


def group_answers(pairs: Iterable[StoredAnswers], *, expected: int = 0) -> Gathered:
    """Gather pairs into groups, in one pass. `expected`: about how many will come, to spread the samples of latency."""
    found = Gathered()
    groups: dict[tuple[Mark, ...], AnswerGroup] = {}
    step = max(1, expected // LATENCIES)
    for number, one in enumerate(pairs):
        key = one.key()
        group = groups.get(key)
        if group is None:
            group = groups[key] = AnswerGroup(one.turns, one.votes, one.adjudged)
            found.groups.append(group)
        group.pairs += 1
        group.truths[one.truth] += 1
        found.windowed += one.window > 0
        for totals, parts in ((group.spent, [one.spent]), (group.beside, one.beside.values())):
            for slot, spent in chain.from_iterable(part.items() for part in parts):
                totals[slot] = totals.get(slot, CallTotals()) + spent
        # Every step-th pair: campaigns begin with other pairs than they end with, so the first ones would mislead.
        if number % step == 0:
            found.samples.append((group, one))
        for place, vote in one.votes.items():
            given = vote.probabilities if isinstance(vote, Turn) else None
            if given and given.keys() & {"yes", "no"}:
                spent = one.spent.get(("vote", 0, place), CallTotals())
                # Votes that were stored while the answer not given could be missing have its bound: the rest.
                yes, no = given.get("yes", 1 - given.get("no", 1.0)), given.get("no", 1 - given.get("yes", 1.0))
                found.beliefs.setdefault(place, []).append((yes, no, one.truth.gold, spent))
    return found
