"""Balance of length by score: the largest cells are capped until all are nearly equal (Prism 4.5). Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from corpus.errors import BadOption

SCORES = 6  # Number of equal bins of the teacher's score in [0, 1].
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)  # Ends of length bins, in words or tokens; the last bin has no end.
AIM = 0.99  # Relative entropy of balanced cells.
ALL = SCORES * (len(LENGTHS) + 1)  # Number of cells: 48.

Grid = NDArray[np.int64]


def balance_pairs(
    scores: Sequence[float], lengths: Sequence[int], sort_keys: Sequence[bytes], *, entropy: str = "filled"
) -> tuple[list[int], dict[str, Any]]:
    """Cap all cells at the largest size with which the relative entropy is at least 0.99.

    `scores` in [0, 1]; `lengths` in words or tokens; `sort_keys`: seeded keys of the order in which a cell
    takes its rows; `entropy`: relative to the logarithm of the number of filled cells (`filled`), or to
    ln 48 (`prism`, P eq. 5). Return the positions of the remaining rows, ascending, and the description for
    the manifest, to which the caller adds the unit of the lengths. Raises BadOption where so few cells are
    filled that `prism` cannot reach 0.99.
    """
    cells = cells_of(scores, lengths)
    counts = np.bincount(cells, minlength=ALL)
    if entropy == "prism" and (reached := _cell_entropies(np.minimum(counts, 1))[1]) < AIM:
        words = _(
            "The entropy over all %(cells)s cells cannot reach %(aim)s: only %(filled)s cells of score by length "
            "contain a pair, which gives %(reached)s at most. Balance over the filled cells, or bring graded teacher "
            "scores and texts of every length."
        )
        values = {"cells": ALL, "aim": AIM, "filled": np.count_nonzero(counts), "reached": f"{reached:.3f}"}
        raise BadOption("balance_entropy", words % values)
    # The largest cap that reaches the aim is found by bisection: the entropy falls as the cap grows.
    which = ("filled", "prism").index(entropy)
    low, high = 1, int(counts.max(initial=1))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _cell_entropies(np.minimum(counts, middle))[which] >= AIM else (low, middle - 1)
    largest_size = low
    capacity = np.minimum(counts, largest_size)
    rows = []
    # In seeded order, so that the same set can be made again.
    for position in sorted(range(len(cells)), key=sort_keys.__getitem__):
        if capacity[cells[position]] > 0:
            capacity[cells[position]] -= 1
            rows.append(position)
    return sorted(rows), {
        "before": measure_spread(counts),
        "after": measure_spread(np.minimum(counts, largest_size)),
        "cap": largest_size,
        "share_kept": round(len(rows) / len(cells), 6) if len(cells) else None,
        "score_bins": SCORES,
        "length_bins": list(LENGTHS),
    }


def cells_of(scores: Sequence[float], lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return the cell of each row: score bin times 8, plus length bin. The score 1 is in the last bin."""
    # Scores are quotients of small numbers: rounding must not move one below the edge of its bin.
    bins = np.minimum((np.asarray(scores, dtype=np.float64) * SCORES + 1e-9).astype(np.int64), SCORES - 1)
    columns = np.searchsorted(LENGTHS, np.asarray(lengths, dtype=np.int64), side="right")
    return bins * (len(LENGTHS) + 1) + columns


def measure_spread(counts: Grid) -> dict[str, Any]:
    """Return the counts of the cells (score bins x length bins, ascending), and how even they are."""
    filled = counts[counts > 0]
    entropy, entropy_of_all = _cell_entropies(counts)
    return {
        "cells": counts.reshape(SCORES, len(LENGTHS) + 1).tolist(),
        "entropy": round(entropy, 6),
        "entropy_of_all_cells": round(entropy_of_all, 6),
        "coefficient_of_variation": round(float(filled.std() / filled.mean()), 6) if len(filled) else 0.0,
    }


def _cell_entropies(counts: Grid) -> tuple[float, float]:
    """Return the entropy relative to its maximum over the filled cells, and over all 48 (P eq. 5)."""
    filled = counts[counts > 0]
    if len(filled) < 2:
        return 1.0, 0.0
    shares = filled / filled.sum()
    entropy = float(-(shares * np.log(shares)).sum())
    return entropy / float(np.log(len(filled))), entropy / float(np.log(len(counts)))
