"""The verdict on a new run beside an old one: pass, fail, or cannot tell, with the reason. Pure.

For each measure the change is the mean of new - old over the queries of the qrels. Its interval is that of the report's
own test: the changes that a paired randomisation test over queries does not exclude (benchmark.significance.paired).
Two things are uncertain: which queries were drawn, which the interval covers, and the grades of unjudged documents,
which the bounds cover (benchmark.bounds.differences).

- FAIL: judged as much in favour of the new run as it can be, the interval still lies below the limit -max_drop.
- PASS: judged as much against it as it can be, the interval still lies at the limit or above it.
- CANNOT TELL: too few queries, where the interval contains the limit however the documents are judged; or unjudged
  documents decide, where some ways to judge them give a verdict.

This takes two intervals and not all completions, because for fixed random signs both ends rise with every query's
difference d: the upper end is, over the signs, an order statistic of the larger of two weighted means of d, that of the
queries whose sign is turned and that of the others; the lower end one of the smaller. So the extreme ends are those of
the extreme differences, which all queries can have at once.

Of several measures any one fails the gate, and all must pass. Each end of an interval at level alpha is wrong in half
of alpha, so that up to two measures together fail an unharmed run in at most alpha of cases; beyond two the level is
2 alpha / M (Bonferroni), which keeps that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmark.bounds.bounds import Floats
from benchmark.bounds.differences import Differences
from benchmark.significance.paired import NEAR, Tests

Outcome = Literal["pass", "fail", "cannot_tell"]
Cause = Literal["", "queries", "unjudged"]  # Why the gate cannot tell; empty where it can.
PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot_tell"
QUERIES, UNJUDGED = "queries", "unjudged"


@dataclass(frozen=True, slots=True)
class MeasureVerdict:
    """The verdict by one measure. `low`, `high`: the interval with unjudged documents as not relevant."""

    old: float
    new: float
    change: float
    low: float
    high: float
    max_drop: float
    least: float  # The mean change at worst, over all ways to judge.
    most: float
    lowest: float  # The lower end of the interval at worst.
    highest: float
    is_exact: bool  # Whether judgments can reach the bounds.
    verdict: Outcome
    cause: Cause


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict by all measures; `deciding`: the unjudged pairs that decide, the most influential first."""

    verdict: Outcome
    cause: Cause
    measures: dict[str, MeasureVerdict]
    deciding: list[tuple[int, int]]  # Query and document.
    level: float  # Of each interval.


def tell_verdict(
    differences: Mapping[str, Differences],
    *,
    max_drop: float,
    confidence: float,
    weights: Floats | None = None,
    seed: int = 0,
) -> GateVerdict:
    """Return the verdict on the differences of two runs by measure.

    `max_drop`: the most that a mean may fall, from 0; `weights`: (queries,) on average 1, by how often each was asked.
    """
    level = (1 - confidence) * min(1.0, 2 / len(differences))
    # Of each measure the change as judged, at worst and at best, beside a last column of zeros: all share their signs.
    changes = [
        column for values in differences.values() for column in (values.new - values.old, values.least, values.most)
    ]
    matrix = np.column_stack([*changes, np.zeros_like(changes[0])])
    shares = np.ones(len(matrix)) if weights is None else weights
    tests = Tests(matrix * shares[:, None], seed, weights)
    measures = {
        name: _tell_measure(values, shares, tests, 3 * position, max_drop, level)
        for position, (name, values) in enumerate(differences.items())
    }
    verdicts = [outcome.verdict for outcome in measures.values()]
    if FAIL in verdicts:
        return GateVerdict("fail", "", measures, [], level)
    if set(verdicts) == {PASS}:
        return GateVerdict("pass", "", measures, [], level)
    undecided = [name for name, outcome in measures.items() if outcome.cause == UNJUDGED]
    # The pairs of queries whose difference they can move far come first, for a budget that does not reach all.
    influence: dict[tuple[int, int], float] = {}
    for name in undecided:
        values = differences[name]
        widths = (values.most - values.least) * shares
        for pair, position in zip(values.deciding, values.positions, strict=True):
            influence[pair] = influence.get(pair, 0.0) + float(widths[position])
    deciding = sorted(influence, key=lambda pair: (-influence[pair], pair))
    return GateVerdict("cannot_tell", "unjudged" if undecided else "queries", measures, deciding, level)


def _tell_measure(
    values: Differences, shares: Floats, tests: Tests, first: int, max_drop: float, level: float
) -> MeasureVerdict:
    """Return the verdict by one measure, whose three changes begin at column `first` of the tests."""
    least, most, new, old = (
        float((column * shares).mean()) for column in (values.least, values.most, values.new, values.old)
    )
    zeros = tests.values.shape[1] - 1
    (low, high), (lowest, least_high), (most_low, highest) = (
        tests.interval(column, zeros, level) for column in range(first, first + 3)
    )
    limit = -max_drop - 2 * NEAR  # Intervals are wider than the test's by what rounding moves.
    verdict: Outcome = "fail" if highest < limit else "pass" if lowest >= limit else "cannot_tell"
    # Ends rise with the differences: if judging at worst does not fail it, and at best does not pass it, none does.
    is_open = least_high < limit or most_low >= limit
    cause: Cause = "" if verdict != CANNOT_TELL else "unjudged" if is_open else "queries"
    return MeasureVerdict(
        old, new, new - old, low, high, max_drop, least, most, lowest, highest, values.is_exact, verdict, cause
    )


def as_document(outcome: MeasureVerdict) -> dict[str, Any]:
    """Return the verdict by one measure as programs read it, with figures of nine decimals."""
    return {
        name: round(value, 9) + 0.0 if isinstance(value := getattr(outcome, name), float) else value
        for name in outcome.__dataclass_fields__
    }
