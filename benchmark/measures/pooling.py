"""The pool: the top documents of all rankings by query, and which of them are judged (DREAM 4.1). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Rankings = Mapping[int, Mapping[int, Integers]]  # run -> query -> documents, best first.
# query -> judged documents, and their grades.
Judged = Mapping[int, tuple[Integers, NDArray[np.int16]]]


@dataclass(frozen=True, slots=True)
class JudgmentPool:
    """Pairs by query and document, each once."""

    queries: Integers
    documents: Integers
    is_judged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def candidates(self) -> tuple[Integers, Integers]:
        """Queries and documents of the pairs that nobody judged."""
        return self.queries[~self.is_judged], self.documents[~self.is_judged]


def pool_rankings(rankings: Rankings, depth: int, judged: Judged) -> JudgmentPool:
    """Return the union of the best `depth` documents of every ranking."""
    tops = [(query, documents[:depth]) for ranking in rankings.values() for query, documents in ranking.items()]
    queries = np.repeat(np.array([query for query, _ in tops], dtype=np.int64), [len(top) for _, top in tops])
    documents = np.concatenate([np.empty(0, np.int64), *(top for _, top in tops)])
    # Each pair once, by query and document. One number per pair sorts ten times as fast as two columns.
    names, documents = np.unique(documents, return_inverse=True)
    first, queries = np.unique(queries, return_inverse=True)
    keys, width = np.unique(queries * max(len(names), 1) + documents), max(len(names), 1)
    queries, documents = first[keys // width], names[keys % width]
    is_judged = np.zeros(len(queries), dtype=bool)
    # Pairs are sorted by query, so each query is one slice.
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    for start, end in zip(starts, np.append(starts, len(queries))[1:], strict=True):
        if (judged_rows := judged.get(int(queries[start]))) is not None:
            is_judged[start:end] = np.isin(documents[start:end], judged_rows[0])
    return JudgmentPool(queries, documents, is_judged)
