"""Limits of time hold for a machine of ordinary speed: how much slower is this one, at this moment?"""

import time

ORDINARY_S = 0.025
"""Wall seconds of `_work` on an idle core of the machines on which the limits were set."""


def slowness() -> float:
    """1 on such a machine, 4 on one that is four times slower or that four others use as well; at least 1."""
    began = time.perf_counter()
    for _ in range(5):
        _work()
    return max(1.0, (time.perf_counter() - began) / 5 / ORDINARY_S)


def _work() -> int:
    return sum(number * number for number in range(500_000))
