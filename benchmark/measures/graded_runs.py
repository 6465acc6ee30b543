"""Rankings and qrels as arrays: the documents of runs and their grades in a version of the qrels. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Grades = NDArray[np.int16]
Floats = NDArray[np.float64]
Rankings = Mapping[int, Ints]  # query key -> document keys, best first.
Judgments = Mapping[int, tuple[Ints, Grades]]  # query key -> document keys and their grades.
NONE = -1  # In an array of documents: no document at this rank. In an array of grades: not judged.
# A pair's code is the position of its query x SPAN + document key; SPAN is above any key of a database.
SPAN = 1 << 40


def stack_rankings(runs: Sequence[Rankings], queries: Sequence[int], k: int) -> Ints:
    """Return (runs, queries, k) document keys; NONE where a run has no more documents."""
    stacked = np.full((len(runs), len(queries), k), NONE, dtype=np.int64)
    for row, rankings in enumerate(runs):
        for column, query in enumerate(queries):
            top = rankings.get(query)
            if top is not None:
                best = top[:k]
                stacked[row, column, : len(best)] = best
    return stacked


def encode_pairs(documents: Ints) -> Ints:
    """Return the codes of the pairs in (..., queries, k); NONE stays NONE."""
    # The same document for two queries is two pairs.
    offsets = np.arange(documents.shape[-2], dtype=np.int64)[:, None] * SPAN
    return np.where(documents == NONE, NONE, documents + offsets)


@dataclass(frozen=True)
class Version:
    """A version of the qrels over the queries of a report: sorted codes, and the grade of each."""

    queries: int
    codes: Ints
    grades: Grades

    @classmethod
    def of(cls, judgments: Judgments, queries: Sequence[int]) -> "Version":
        """Build from judgments of these queries; a grade below 0 means not judged."""
        codes, grades = [], []
        for position, query in enumerate(queries):
            if query in judgments:
                documents, query_grades = judgments[query]
                # A grade below 0 is TREC's mark for "in the pool, not judged".
                is_judged = np.asarray(query_grades) >= 0
                codes.append(np.asarray(documents, dtype=np.int64)[is_judged] + position * SPAN)
                grades.append(np.asarray(query_grades, dtype=np.int16)[is_judged])
        if not codes:
            return cls(len(queries), np.empty(0, np.int64), np.empty(0, np.int16))
        flat = np.concatenate(codes)
        order = np.argsort(flat)
        return cls(len(queries), flat[order], np.concatenate(grades)[order])

    def look_up(self, codes: Ints) -> Grades:
        """Return the grade of each pair; NONE where it is not judged."""
        if not len(self.codes):
            return np.full(codes.shape, NONE, dtype=np.int16)
        # searchsorted returns the length for a code above the last.
        positions = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[positions] == codes, self.grades[positions], NONE).astype(np.int16)

    @cached_property
    def pair_queries(self) -> Ints:
        """Return the position of each graded pair's query."""
        return self.codes // SPAN

    def at_least(self, grade: int) -> Ints:
        """Count the documents of each query with this grade or a higher one."""
        return np.bincount(self.pair_queries[self.grades >= grade], minlength=self.queries).astype(np.int64)

    @cached_property
    def levels(self) -> list[int]:
        """Return the grades above 0 that occur, ascending."""
        return [int(grade) for grade in np.unique(self.grades) if grade > 0]
