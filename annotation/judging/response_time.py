"""Answers at even times, so that how long one takes does not tell a check from another pair."""

import time

from corpus.models import Collection

# Answers come at multiples of this. People do not feel it; without it a classifier on times alone found checks.
GRID_S = 0.025


def wait_for_grid(collection: Collection, began: float) -> None:
    """Wait for the grid, from `began` (time.perf_counter) on, where checks or repeats may come."""
    if collection.has_checks or collection.repeats:
        time.sleep(GRID_S - (time.perf_counter() - began) % GRID_S)
