"""Counts of the answers to comparisons: wins, majorities, agreement, sides, and grades from strengths. Pure."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import quantiles
from typing import Literal, NamedTuple

# The outcomes of a comparison: the preferred document, a tie, or both bad.
FIRST, SECOND, EQUAL, BOTH_BAD = "first", "second", "equal", "both_bad"
Kind = Literal["person", "judge"]
Sources = Literal["resolved", "people", "machine"]


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """An assessor's current answer to a comparison; `first_id` and `second_id` are keys of documents."""

    comparison: int
    query_id: int
    first_id: int
    second_id: int
    outcome: str
    assessor_id: int
    kind: Kind
    swapped: bool


class Hits(NamedTuple):
    """The number of answers with a property, and the number of all answers that could have it."""

    hits: int
    total: int


@dataclass(slots=True)
class DocumentCounts:
    """The answers to the comparisons of one document."""

    wins: int = 0
    losses: int = 0
    equal: int = 0
    both_bad: int = 0

    @property
    def answers(self) -> int:
        """Number of answers."""
        return self.wins + self.losses + self.equal + self.both_bad


@dataclass(slots=True)
class VotedCouple:
    """Two documents of a query with all answers about them; `first_id` is the smaller key."""

    query_id: int
    first_id: int
    second_id: int
    votes: Counter[str] = field(default_factory=Counter)

    @property
    def majority(self) -> str | None:
        """The outcome of more than half of the answers; None if there is none."""
        ((outcome, votes),) = self.votes.most_common(1)
        return outcome if 2 * votes > self.votes.total() else None


def choose_sources(outcomes: Sequence[ComparisonOutcome], sources: Sources) -> list[ComparisonOutcome]:
    """Return the answers of people, of judges, or of people where there are any about a comparison and else judges."""
    if sources != "resolved":
        return [outcome for outcome in outcomes if outcome.kind == ("person" if sources == "people" else "judge")]
    answered = {outcome.comparison for outcome in outcomes if outcome.kind == "person"}
    return [outcome for outcome in outcomes if (outcome.kind == "person") == (outcome.comparison in answered)]


def count_wins(outcomes: Iterable[ComparisonOutcome]) -> list[tuple[int, int, float]]:
    """Return (preferred document, other document, weight): a tie, and both bad, are half a win of each."""
    wins: list[tuple[int, int, float]] = []
    for outcome in outcomes:
        first, second = outcome.first_id, outcome.second_id
        if outcome.outcome == FIRST:
            wins.append((first, second, 1.0))
        elif outcome.outcome == SECOND:
            wins.append((second, first, 1.0))
        else:
            wins += [(first, second, 0.5), (second, first, 0.5)]
    return wins


def count_by_document(outcomes: Iterable[ComparisonOutcome]) -> dict[int, DocumentCounts]:
    """Return the answers about each document."""
    counts: dict[int, DocumentCounts] = defaultdict(DocumentCounts)
    for outcome in outcomes:
        for document, winning_outcome in ((outcome.first_id, FIRST), (outcome.second_id, SECOND)):
            document_counts = counts[document]
            if outcome.outcome == EQUAL:
                document_counts.equal += 1
            elif outcome.outcome == BOTH_BAD:
                document_counts.both_bad += 1
            elif outcome.outcome == winning_outcome:
                document_counts.wins += 1
            else:
                document_counts.losses += 1
    return dict(counts)


def count_agreement(outcomes: Iterable[ComparisonOutcome]) -> Hits:
    """Return how often two answers to the same comparison agree, of all couples of such answers."""
    answers: dict[int, list[str]] = defaultdict(list)
    for outcome in outcomes:
        answers[outcome.comparison].append(outcome.outcome)
    couples = [a == b for votes in answers.values() for a, b in combinations(votes, 2)]
    return Hits(sum(couples), len(couples))


def count_left(outcomes: Iterable[ComparisonOutcome]) -> Hits:
    """Return how many of the answers that prefer a document prefer the one shown on the left."""
    decided = [outcome for outcome in outcomes if outcome.outcome in (FIRST, SECOND)]
    return Hits(sum((outcome.outcome == FIRST) != outcome.swapped for outcome in decided), len(decided))


def count_outcome(outcomes: Collection[ComparisonOutcome], *names: str) -> Hits:
    """Return how many answers are one of these outcomes."""
    return Hits(sum(outcome.outcome in names for outcome in outcomes), len(outcomes))


def add_votes(outcomes: Iterable[ComparisonOutcome]) -> list[VotedCouple]:
    """Add up the answers about the same two documents of a query, also from several sets, in their first order."""
    couples: dict[tuple[int, int, int], VotedCouple] = {}
    for outcome in outcomes:
        low, high = sorted((outcome.first_id, outcome.second_id))
        couple = couples.setdefault((outcome.query_id, low, high), VotedCouple(outcome.query_id, low, high))
        # The couple's first document may be the second one of the comparison.
        exchanged = {FIRST: SECOND, SECOND: FIRST} if low != outcome.first_id else {}
        couple.votes[exchanged.get(outcome.outcome, outcome.outcome)] += 1
    return list(couples.values())


def choose_thresholds(strengths: Collection[float], grades: int) -> list[float]:
    """Return the lowest strength of each grade from 1 to `grades`, so that the grades have equally many documents."""
    if len(strengths) < 2:
        return [0.0] * grades
    return quantiles(strengths, n=grades + 1, method="inclusive")


def grade_strength(strength: float, thresholds: Sequence[float]) -> int:
    """Return the grade of a document: how many of the ascending thresholds its strength reaches."""
    return bisect_right(thresholds, strength)
