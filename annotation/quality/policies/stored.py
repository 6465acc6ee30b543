"""Stored answers about a campaign's pairs: turns, votes, their costs, and true labels. Pure.

Pairs with the same answers have the same outcome under every policy, so they form a group: a
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

# A slot, its verdict or the reason why it has none, and whether the agent changed sides without evidence.
Mark = tuple[str, int, int, int | str, bool]

LATENCIES = 400  # Number of pairs whose latency is measured, spread over the campaign.


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Totals of calls, failed attempts included."""

    calls: int = 0
    usd: float = 0.0  # Cost of the calls with a price.
    unpriced: int = 0  # Number of calls without a price.
    milliseconds: int = 0

    def __add__(self, other: "CallTotals") -> "CallTotals":
        sums = (self.calls + other.calls, self.usd + other.usd, self.unpriced + other.unpriced)
        return CallTotals(*sums, self.milliseconds + other.milliseconds)

    @property
    def cost(self) -> float | None:
        """Cost in USD; None where a price is unknown."""
        return None if self.unpriced else self.usd


@dataclass(frozen=True, slots=True)
class ReferenceLabels:
    """True labels of a pair: 1 relevant, 0 not relevant, None unknown."""

    gold: int | None = None
    people: int | None = None
    # Weight of people's label: the inverse of the sampling probability (escalated: 1, audited: p), raised
    # where pairs of the sample are not resolved; 0 for a pair outside the sample.
    weight: float = 0.0


@dataclass(slots=True)
class StoredAnswers:
    """Stored answers about one pair. `adjudged`: an adjudicating judge's verdict, by the round after which it came."""

    pair: int
    turns: dict[tuple[int, DebateAgent], Turn | NoVerdict] = field(default_factory=dict)
    votes: dict[int, Turn | NoVerdict] = field(default_factory=dict)
    adjudged: dict[int, Turn | NoVerdict] = field(default_factory=dict)
    spent: dict[Slot, CallTotals] = field(default_factory=dict)
    truth: ReferenceLabels = ReferenceLabels()
    window: int = 0  # The window that decided, of a document judged in windows; 0: it was judged whole.
    # Calls about each window that did not decide, by its number.
    beside: dict[int, dict[Slot, CallTotals]] = field(default_factory=dict)

    def key(self) -> tuple[Mark, ...]:
        """Return a key that is equal for pairs with the same outcome under every policy."""
        changes = without_evidence(self.turns)
        marks = [
            (agent.side.value, round, agent.couple, _outcome_or_verdict(turn), (round, agent) in changes)
            for (round, agent), turn in self.turns.items()
        ]
        marks += [("vote", 0, position, _outcome_or_verdict(vote), False) for position, vote in self.votes.items()]
        marks += [
            ("adjudicate", round, 0, _outcome_or_verdict(verdict), False) for round, verdict in self.adjudged.items()
        ]
        return tuple(sorted(marks, key=lambda mark: mark[:3]))


def _outcome_or_verdict(answer: Turn | NoVerdict) -> int | str:
    return answer.outcome if isinstance(answer, NoVerdict) else answer.verdict


@dataclass(slots=True)
class AnswerGroup:
    """Pairs with the same answers."""

    turns: Turns
    votes: Mapping[int, Turn | NoVerdict]
    adjudged: Mapping[int, Turn | NoVerdict]
    pairs: int = 0
    truths: Counter[ReferenceLabels] = field(default_factory=Counter)
    spent: dict[Slot, CallTotals] = field(default_factory=dict)
    beside: dict[Slot, CallTotals] = field(default_factory=dict)  # Calls about windows that did not decide.

    def count_votes(self) -> ensemble.Count:
        """Count the votes for yes and for no, without those that have no verdict."""
        return ensemble.count_votes(
            None if isinstance(vote, NoVerdict) else vote.verdict for vote in self.votes.values()
        )


@dataclass(slots=True)
class CampaignAnswers:
    """Answers about all pairs of a campaign that judges labelled or escalated."""

    groups: list[AnswerGroup] = field(default_factory=list)
    # Pairs whose latency is measured, each with its group.
    samples: list[tuple[AnswerGroup, StoredAnswers]] = field(default_factory=list)
    windowed: int = 0  # Number of pairs that were judged window by window.
    # By position on the panel, in the order of the pairs: P(yes), P(no), the reference label, and the vote's calls.
    beliefs: dict[int, list[tuple[float, float, int | None, CallTotals]]] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(group.pairs for group in self.groups)

    def measured(self, reference: str) -> int:
        """Return the number of pairs with a true label by the reference (`gold` or `people`)."""
        return sum(
            pairs
            for group in self.groups
            for labels, pairs in group.truths.items()
            if (labels.gold is not None if reference == "gold" else labels.people is not None and labels.weight > 0)
        )


def group_answers(pairs: Iterable[StoredAnswers], *, expected: int = 0) -> CampaignAnswers:
    """Gather pairs into groups, in one pass. `expected`: approximate number of pairs, to spread latency samples."""
    answers = CampaignAnswers()
    groups: dict[tuple[Mark, ...], AnswerGroup] = {}
    step = max(1, expected // LATENCIES)
    for number, pair in enumerate(pairs):
        key = pair.key()
        group = groups.get(key)
        if group is None:
            group = groups[key] = AnswerGroup(pair.turns, pair.votes, pair.adjudged)
            answers.groups.append(group)
        group.pairs += 1
        group.truths[pair.truth] += 1
        answers.windowed += pair.window > 0
        for totals, parts in ((group.spent, [pair.spent]), (group.beside, pair.beside.values())):
            for slot, slot_totals in chain.from_iterable(part.items() for part in parts):
                totals[slot] = totals.get(slot, CallTotals()) + slot_totals
        # Spread over the campaign, because its first pairs are not like its last ones.
        if number % step == 0:
            answers.samples.append((group, pair))
        for position, vote in pair.votes.items():
            probabilities = vote.probabilities if isinstance(vote, Turn) else None
            if probabilities and probabilities.keys() & {"yes", "no"}:
                slot_totals = pair.spent.get(("vote", 0, position), CallTotals())
                # Of old votes only one probability may be stored: the other is at most the rest.
                yes = probabilities.get("yes", 1 - probabilities.get("no", 1.0))
                no = probabilities.get("no", 1 - probabilities.get("yes", 1.0))
                answers.beliefs.setdefault(position, []).append((yes, no, pair.truth.gold, slot_totals))
    return answers
