"""Exact nearest vectors by blocks: no block's scores are larger than a bound, whatever the collection's size. Pure."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

BLOCK = 8192  # Documents whose products with all queries of a batch are held at a time.

Floats = npt.NDArray[np.float32]
Found = tuple[npt.NDArray[np.int64], Floats]


def nearest_vectors(
    queries: Floats, documents: int, rows: Callable[[int, int], Floats], depths: Sequence[int], block: int = BLOCK
) -> list[Found]:
    """For each query (q, size) the places and scores of the documents with the largest products, best first.

    `rows(begin, end)` gives documents' vectors. Of equal scores the earlier place goes first, at the cut too.
    """
    best: list[Found] = [(np.zeros(0, np.int64), np.zeros(0, np.float32)) for _ in depths]
    for begin in range(0, documents, block):
        end = min(begin + block, documents)
        scores = queries @ rows(begin, end).T
        for place, depth in enumerate(depths):
            best[place] = _merge_best(best[place], scores[place], begin, depth)
    return best


def _merge_best(best: Found, scores: Floats, begin: int, depth: int) -> Found:
    """Best so far and a block together. Places of a block come after all earlier ones, so a stable sort is enough."""
    places, kept = best
    fresh = np.arange(len(scores)) if len(kept) < depth else np.flatnonzero(scores > kept[-1])
    if len(fresh) > depth:
        bound = np.partition(scores[fresh], -depth)[-depth]
        fresh = fresh[scores[fresh] >= bound]
    together = np.concatenate([kept, scores[fresh]])
    order = np.argsort(-together, kind="stable")[:depth]
    return np.concatenate([places, fresh + begin])[order], together[order]
