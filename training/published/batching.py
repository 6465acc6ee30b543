"""Batching: the rows of each step depend only on the seed, not on memory or on resumptions of the training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Rows are sorted by length within the rows of so many steps: their steps stay random, with little padding.
NEIGHBOURS = 16


@dataclass(frozen=True)
class Epochs:
    """The order of rows in a training's steps."""

    lengths: Sequence[int]
    batch: int
    seed: int
    order_by: Sequence[int] | None = None  # Lengths by which rows are neighbours, if not by `lengths`.

    @property
    def per_epoch(self) -> int:
        """The number of steps of an epoch."""
        return -(-len(self.lengths) // self.batch)

    def step(self, number: int) -> list[int]:
        """Return the indices of the rows of a step; steps are counted from 0."""
        epoch, epoch_step = divmod(number, self.per_epoch)
        return self.order(epoch)[epoch_step]

    def order(self, epoch: int) -> list[list[int]]:
        """Return the rows of all steps of an epoch, which contain every row exactly once."""
        # The order depends only on seed and epoch, so that a resumed training has the same one.
        random = np.random.default_rng([self.seed, epoch])
        rows = random.permutation(len(self.lengths)).tolist()
        span, lengths = self.batch * NEIGHBOURS, self.order_by or self.lengths
        steps: list[list[int]] = []
        for start in range(0, len(rows), span):
            # Rows of similar length share a step, so that little padding is needed.
            by_length = sorted(rows[start : start + span], key=lambda row: (lengths[row], row))
            steps += [by_length[begin : begin + self.batch] for begin in range(0, len(by_length), self.batch)]
        # Shuffled again, or the long rows of each span would always come last.
        return [steps[index] for index in random.permutation(len(steps))]


def pack_batches(lengths: Sequence[int], budget: int, *, padded: bool = True) -> list[list[int]]:
    """Return the indices of rows in forward passes of at most `budget` tokens, longest first.

    A row longer than the budget has a pass to itself. With `padded`, a pass costs its longest row times its number of
    rows; without (rows packed in one sequence), it costs the sum of its rows.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    passes: list[list[int]] = []
    used = 0
    for row in order:
        cost = lengths[passes[-1][0]] * (len(passes[-1]) + 1) if passes and padded else used + lengths[row]
        if passes and cost <= budget:
            passes[-1].append(row)
            used += lengths[row]
        else:
            passes.append([row])
            used = lengths[row]
    return passes
