"""The pool: what the best of some rankings name, query by query, and what of it is judged (DREAM 4.1). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Rankings = Mapping[int, Mapping[int, Integers]]
"""run -> query -> documents, best first."""
Judged = Mapping[int, tuple[Integers, NDArray[np.int16]]]
"""query -> judged documents, and their grades."""


@dataclass(frozen=True, slots=True)
class Pool:
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


def pool(rankings: Rankings, depth: int, judged: Judged) -> Pool:
    """The union of the best `depth` of every ranking."""
    tops = [(query, documents[:depth]) for of_run in rankings.values() for query, documents in of_run.items()]
    queries = np.repeat([query for query, _ in tops], [len(top) for _, top in tops]).astype(np.int64)
    documents = np.concatenate([np.empty(0, np.int64), *(top for _, top in tops)])
    pairs = np.unique(np.stack([queries, documents], axis=1), axis=0) if len(queries) else np.empty((0, 2), np.int64)
    queries, documents = pairs[:, 0], pairs[:, 1]
    is_judged = np.zeros(len(pairs), dtype=bool)
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    for start, end in zip(starts, np.append(starts, len(queries))[1:], strict=True):
        if (known := judged.get(int(queries[start]))) is not None:
            is_judged[start:end] = np.isin(documents[start:end], known[0])
    return Pool(queries, documents, is_judged)
