"""Length by score: dominating cells are capped until nearly uniform (Prism 4.5). Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from corpus.errors import BadOption

SCORES = 6  # Equal bins of the teacher's score in [0, 1].
# Words or tokens where a length bin ends; the last bin has no end.
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
AIM = 0.99
ALL = SCORES * (len(LENGTHS) + 1)  # Cells: 48.

Grid = NDArray[np.int64]


def balance_pairs(
    scores: Sequence[float], lengths: Sequence[int], places: Sequence[bytes], *, entropy: str = "filled"
) -> tuple[list[int], dict[str, Any]]:
    """Cap every cell at the largest size with which the entropy is at least 0.99. Returns the
    places that stay, ascending, and what the manifest says of it; the caller adds what lengths were
    counted in.

    `scores` in [0, 1], `lengths` in words or tokens, `places`: the seeded order in which a cell
    keeps its rows. `entropy`: `filled` divides by the logarithm of the filled cells, `prism` by ln
    48 (P eq. 5). Raises BadInput where so few cells are filled that the latter cannot reach 0.99.
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
    cap = largest_cap(counts, entropy)
    room = np.minimum(counts, cap)
    kept = []
    # The seed decides who stays in a full cell, so that the same set can be made again.
    for place in sorted(range(len(cells)), key=lambda place: places[place]):
        if room[cells[place]] > 0:
            room[cells[place]] -= 1
            kept.append(place)
    return sorted(kept), {
        "before": measure_spread(counts),
        "after": measure_spread(np.minimum(counts, cap)),
        "cap": cap,
        "share_kept": round(len(kept) / len(cells), 6) if len(cells) else None,
        "score_bins": SCORES,
        "length_bins": list(LENGTHS),
    }


def cells_of(scores: Sequence[float], lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return the cell of each row: score bin times 8 plus length bin; 1 is in the last bin."""
    # Scores are quotients of small numbers: rounding must not drop one below an edge.
    bins = np.minimum((np.asarray(scores, dtype=np.float64) * SCORES + 1e-9).astype(np.int64), SCORES - 1)
    columns = np.searchsorted(LENGTHS, np.asarray(lengths, dtype=np.int64), side="right")
    return bins * (len(LENGTHS) + 1) + columns


def largest_cap(counts: Grid, entropy: str = "filled") -> int:
    """Find the largest cap that reaches the aim, by halving: entropy falls as the cap grows."""
    which = ("filled", "prism").index(entropy)
    low, high = 1, int(counts.max(initial=1))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _cell_entropies(np.minimum(counts, middle))[which] >= AIM else (low, middle - 1)
    return low


def measure_spread(counts: Grid) -> dict[str, Any]:
    """Return how evenly rows lie in the cells: score bins x length bins, ascending."""
    filled = counts[counts > 0]
    entropy, of_all = _cell_entropies(counts)
    return {
        "cells": counts.reshape(SCORES, len(LENGTHS) + 1).tolist(),
        "entropy": round(entropy, 6),
        "entropy_of_all_cells": round(of_all, 6),
        "coefficient_of_variation": round(float(filled.std() / filled.mean()), 6) if len(filled) else 0.0,
    }


def _cell_entropies(counts: Grid) -> tuple[float, float]:
    """Return the entropy over its maximum: for the cells that hold anything, and for all 48 (P eq. 5).

    The latter cannot reach 1 where a cell is empty.
    """
    filled = counts[counts > 0]
    if len(filled) < 2:
        return 1.0, 0.0
    shares = filled / filled.sum()
    entropy = float(-(shares * np.log(shares)).sum())
    return entropy / float(np.log(len(filled))), entropy / float(np.log(len(counts)))
