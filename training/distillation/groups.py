"""Groups of one relevant document and several others of the same query, compared with each other (pure; P app. B)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.errors import BadInput
from training.recipes.data import Example


@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """Places of rows of a training set: the positive and its negatives."""

    positive: int
    negatives: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """All of them, the positive first."""
        return (self.positive, *self.negatives)


@dataclass(frozen=True)
class GroupedSet:
    """The groups of a set, and how many queries had too few documents for one."""

    groups: list[CandidateGroup]
    queries: int
    left_out: int

    @property
    def summary(self) -> str:
        """What became of the set's queries, in one line."""
        return (
            f"{len(self.groups):,} groups of {self.queries - self.left_out:,} queries; {self.left_out:,} of "
            f"{self.queries:,} queries left out"
        )


def group_candidates(rows: Sequence[Example], negatives: int, seed: int) -> GroupedSet:
    """Make one group of each relevant row, with so many other rows of its query, drawn by seed and document.

    A query with fewer others is left out and counted: a document of another query has no score of a teacher here.
    Raises BadInput where no query has enough.
    """
    by_query: dict[str, tuple[list[int], list[int]]] = {}
    for place, row in enumerate(rows):
        if row.label is not None:
            by_query.setdefault(row.query_id, ([], []))[0 if row.label else 1].append(place)
    groups: list[CandidateGroup] = []
    left_out = 0
    for positives, others in by_query.values():
        if not positives or len(others) < negatives:
            left_out += 1
            continue
        groups += [_draw_group(rows, positive, others, negatives, seed) for positive in positives]
    if not groups:
        raise BadInput(
            f"no query of the set has a relevant document and {negatives} others: export with more documents of each "
            "query, or lower negatives"
        )
    return GroupedSet(groups, len(by_query), left_out)


def _draw_group(
    rows: Sequence[Example], positive: int, others: Sequence[int], negatives: int, seed: int
) -> CandidateGroup:
    chance = random.Random(f"{seed}\0{rows[positive].query_id}\0{rows[positive].doc_id}")
    return CandidateGroup(positive, tuple(sorted(chance.sample(others, negatives))))
