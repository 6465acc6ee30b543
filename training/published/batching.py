"""Batching: the same rows come together from the same seed, however often a training resumes and memory differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Steps whose rows are sorted by length together: near enough to chance, near enough in length.
NEIGHBOURS = 16


@dataclass(frozen=True)
class Epochs:
    """The steps of a training: `step(n)` gives the row numbers of step n, from 0."""

    lengths: Sequence[int]
    batch: int
    seed: int

    @property
    def per_epoch(self) -> int:
        """The number of steps that one pass over the rows takes."""
        return -(-len(self.lengths) // self.batch)

    def step(self, number: int) -> list[int]:
        """Return the rows of a step, from 0."""
        epoch, place = divmod(number, self.per_epoch)
        return self.order(epoch)[place]

    def order(self, epoch: int) -> list[list[int]]:
        """Return all steps of an epoch. Every row comes exactly once."""
        # Of seed and epoch alone, so that a resumed training finds the same order.
        random = np.random.default_rng([self.seed, epoch])
        rows = random.permutation(len(self.lengths)).tolist()
        span = self.batch * NEIGHBOURS
        steps: list[list[int]] = []
        for start in range(0, len(rows), span):
            # Rows of like length share a step, so that little is padded.
            near = sorted(rows[start : start + span], key=lambda row: (self.lengths[row], row))
            steps += [near[at : at + self.batch] for at in range(0, len(near), self.batch)]
        # Shuffled once more, or the long rows of each span would always come last.
        return [steps[place] for place in random.permutation(len(steps))]


def pack_batches(lengths: Sequence[int], budget: int, *, padded: bool = True) -> list[list[int]]:
    """Return places of rows in forward passes of at most `budget` tokens, longest first; a longer row stands alone.

    padded: a pass costs its longest row times its rows; else (packed in one sequence) the sum of the rows.
    """
    order = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))
    passes: list[list[int]] = []
    used = 0
    for place in order:
        cost = lengths[passes[-1][0]] * (len(passes[-1]) + 1) if passes and padded else used + lengths[place]
        if passes and cost <= budget:
            passes[-1].append(place)
            used += lengths[place]
        else:
            passes.append([place])
            used = lengths[place]
    return passes
