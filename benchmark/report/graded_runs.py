"""Rankings and qrels as arrays: what runs returned, and how a version grades it. Pure."""

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
NONE = -1  # In an array of documents: none at this rank. In an array of grades: nobody judged it.
# A pair's code is query place x SPAN + document key: more keys than a database hands out.
SPAN = 1 << 40


def stack_rankings(runs: Sequence[Rankings], queries: Sequence[int], k: int) -> Ints:
    """(runs, queries, k) of document keys; NONE where a run has no more documents."""
    found = np.full((len(runs), len(queries), k), NONE, dtype=np.int64)
    for place, rankings in enumerate(runs):
        for at, query in enumerate(queries):
            top = rankings.get(query)
            if top is not None:
                kept = top[:k]
                found[place, at, : len(kept)] = kept
    return found


def encode_pairs(documents: Ints) -> Ints:
    """Codes of the pairs in (..., queries, k); NONE stays NONE."""
    # Documents are told apart by query: the same document in two queries is two pairs.
    places = np.arange(documents.shape[-2], dtype=np.int64)[:, None] * SPAN
    return np.where(documents == NONE, NONE, documents + places)


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
        for place, query in enumerate(queries):
            if query in judgments:
                documents, given = judgments[query]
                # A grade below 0 is TREC's mark for "in the pool, not judged".
                is_judged = np.asarray(given) >= 0
                codes.append(np.asarray(documents, dtype=np.int64)[is_judged] + place * SPAN)
                grades.append(np.asarray(given, dtype=np.int16)[is_judged])
        if not codes:
            return cls(len(queries), np.empty(0, np.int64), np.empty(0, np.int16))
        flat = np.concatenate(codes)
        order = np.argsort(flat)
        return cls(len(queries), flat[order], np.concatenate(grades)[order])

    def look_up(self, codes: Ints) -> Grades:
        """The grade of each pair; NONE where nobody judged it."""
        if not len(self.codes):
            return np.full(codes.shape, NONE, dtype=np.int16)
        # searchsorted gives the length for a code behind the last, which no element has.
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[places] == codes, self.grades[places], NONE).astype(np.int16)

    @cached_property
    def query_places(self) -> Ints:
        """The query of each graded pair."""
        return self.codes // SPAN

    def at_least(self, grade: int) -> Ints:
        """Documents of each query with this grade or a higher one."""
        return np.bincount(self.query_places[self.grades >= grade], minlength=self.queries).astype(np.int64)

    @cached_property
    def levels(self) -> list[int]:
        """The grades above 0 that occur, ascending."""
        return [int(grade) for grade in np.unique(self.grades) if grade > 0]
