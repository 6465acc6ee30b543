"""The gate's verdict: what it says of worlds whose true change is known, and why it cannot tell."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.bounds.differences import Differences, compare_rankings, read_measures
from benchmark.gate.verdict import GateVerdict, tell_verdict
from benchmark.measures.arrays import dcg_discounts
from benchmark.significance import paired

K, TOP, DOCUMENTS = 5, 3, 14
SHARES = [0.55, 0.2, 0.15, 0.1]  # Of the grades 0 to 3.
CONFIDENCE = 0.95
Matrix = np.ndarray


@dataclass(frozen=True)
class World:
    """Queries with true grades, (queries, documents), two rankings of them, and which grades are known."""

    grades: Matrix
    new: Matrix
    old: Matrix
    is_judged: Matrix

    def ndcg(self, ranking: Matrix, grades: Matrix) -> Matrix:
        """nDCG@K, written anew."""
        gained = np.take_along_axis(grades, ranking[:, :K], axis=1) @ dcg_discounts(K)
        ideal = -np.sort(-grades, axis=1)[:, :K] @ dcg_discounts(K)
        return np.divide(gained, ideal, out=np.zeros(len(grades)), where=ideal > 0)

    def change(self, grades: Matrix) -> float:
        """The mean change of nDCG@K under these grades."""
        return float((self.ndcg(self.new, grades) - self.ndcg(self.old, grades)).mean())

    def verdict(self, max_drop: float) -> GateVerdict:
        name, queries = f"nDCG@{K}", range(len(self.grades))
        judged = {
            query: (np.flatnonzero(self.is_judged[query]), self.grades[query][self.is_judged[query]].astype(np.int16))
            for query in queries
        }
        measure = read_measures(name, relevant_from=1, top=TOP)[name]
        differences = compare_rankings(
            measure, dict(enumerate(self.new)), dict(enumerate(self.old)), judged, queries, TOP
        )
        return tell_verdict({name: differences}, max_drop=max_drop, confidence=CONFIDENCE)


def make_world(random: np.random.Generator, queries: int, new_noise: float, old_noise: float, missing: str) -> World:
    """Systems order documents by their true grade and noise: the less of it, the better."""
    grades = random.choice(TOP + 1, size=(queries, DOCUMENTS), p=SHARES)
    hard = random.gamma(2.0, 0.5, size=(queries, 1))  # Some queries are harder for both.
    new, old = (
        np.argsort(-(grades + noise * hard * random.normal(size=grades.shape)), axis=1)
        for noise in (new_noise, old_noise)
    )
    if missing == "nothing":
        is_judged = np.ones(grades.shape, dtype=bool)
    elif missing == "at random":
        is_judged = random.random(grades.shape) > 0.1
    else:
        # What the old system returned was judged, and of the rest more where it is relevant.
        is_judged = random.random(grades.shape) < 0.3 + 0.2 * grades
        np.put_along_axis(is_judged, old[:, :K], True, axis=1)
    return World(grades, new, old, is_judged)


def completions(world: World, random: np.random.Generator) -> list[Matrix]:
    """Some ways to judge what is unjudged: by chance, and against the new system."""
    only_old = np.zeros(world.grades.shape, dtype=bool)
    np.put_along_axis(only_old, world.old[:, :K], True, axis=1)
    np.put_along_axis(only_old, world.new[:, :K], False, axis=1)
    ways = [random.choice(TOP + 1, size=world.grades.shape) for _ in range(5)] + [only_old * TOP, only_old * 0]
    return [np.where(world.is_judged, world.grades, way) for way in (*ways, world.grades)]


def test_fail_is_rarely_said_of_an_unharmed_run_and_pass_never_where_judgments_could_break_it():
    random = np.random.default_rng(20)
    # Noise of the new and the old system: equal (the true change is 0), better, worse. Without noise nDCG would be 1.
    systems = {"equal": (1.2, 1.2), "better": (1.1, 1.2), "worse": (1.6, 1.2), "much worse": (3.0, 1.0)}
    true_change = {
        name: 0.0 if new == old else (world := make_world(random, 20_000, new, old, "nothing")).change(world.grades)
        for name, (new, old) in systems.items()
    }
    assert true_change["better"] > 0 > true_change["worse"] > true_change["much worse"]
    verdicts: Counter[tuple[str, str]] = Counter()
    broken = 0
    # Two of three worlds are unharmed, most of these at the edge: equal systems, everything judged, no drop allowed.
    for number in range(600):
        name = ("equal", "equal", "better", "equal", "worse", "much worse")[number % 6]
        missing = ("nothing", "nothing", "at random", "not at random")[number // 6 % 4]
        max_drop = (0.0, 0.0, 0.01, 0.05)[number // 24 % 4]
        world = make_world(random, int(random.integers(8, 60)), *systems[name], missing)
        outcome = world.verdict(max_drop).verdict
        verdicts[name, outcome] += 1
        if outcome == "pass":
            broken += any(world.change(grades) < -max_drop - 1e-8 for grades in completions(world, random))

    unharmed = sum(count for (name, _told), count in verdicts.items() if true_change[name] >= 0)
    failed = sum(count for (name, outcome), count in verdicts.items() if true_change[name] >= 0 and outcome == "fail")
    assert failed / unharmed <= 1 - CONFIDENCE, verdicts
    assert broken == 0
    # The property is not kept by never telling.
    assert {outcome for _name, outcome in verdicts} == {"pass", "fail", "cannot_tell"}


def differences(least: list[float], today: list[float], most: list[float]) -> Differences:
    new, zeros = np.array(today), np.zeros(len(today))
    pairs = [(query, 100 + query) for query in range(len(today)) if least[query] < most[query]]
    return Differences(new, zeros, np.array(least), np.array(most), pairs, [query for query, _ in pairs], True)


def outcome_of(least: float, most: float, queries: int = 20, max_drop: float = 0.01) -> GateVerdict:
    """Every query changes alike, so that the interval of a completion is a point."""
    values = differences([least] * queries, [(least + most) / 2] * queries, [most] * queries)
    return tell_verdict({"m": values}, max_drop=max_drop, confidence=CONFIDENCE)


def test_the_verdict_follows_the_bounds():
    assert outcome_of(-0.01, 0.3).verdict == "pass"
    assert outcome_of(-0.3, -0.02).verdict == "fail"
    open_verdict = outcome_of(-0.02, 0.3)
    assert (open_verdict.verdict, open_verdict.cause, len(open_verdict.deciding)) == ("cannot_tell", "unjudged", 20)
    few = outcome_of(0.0, 0.0, queries=3)
    assert (few.verdict, few.cause, few.deciding) == ("cannot_tell", "queries", [])
    # Judged at its best, the interval still contains the limit: no judging would settle it.
    wide = [-0.5, 0.5] * 4
    values = differences([value - 0.01 for value in wide], wide, [value + 0.01 for value in wide])
    assert tell_verdict({"m": values}, max_drop=0.01, confidence=CONFIDENCE).cause == "queries"


def test_several_measures_fail_by_one_and_pass_by_all():
    good, bad, unknown = ([0.1] * 20, [-0.1] * 20, [-0.1] * 10 + [0.1] * 10)
    by_name = {"good": differences(good, good, good), "bad": differences(bad, bad, bad)}
    by_name["open"] = differences(bad, unknown, good)

    def verdict_of(*names: str) -> GateVerdict:
        return tell_verdict({name: by_name[name] for name in names}, max_drop=0.01, confidence=CONFIDENCE)

    assert verdict_of("good").verdict == "pass"
    assert verdict_of("good", "bad", "open").verdict == "fail"
    assert verdict_of("good", "open").cause == "unjudged"
    # Of three measures each interval is wider, so that together they fail an unharmed run as rarely.
    assert [verdict_of(*names).level for names in (["good"], ["good", "bad"], ["good", "bad", "open"])] == (
        pytest.approx([0.05, 0.05, 0.1 / 3])
    )


def test_weights_weigh_queries_in_mean_and_interval():
    values = [0.2] * 10 + [-0.2] * 10
    plain = differences(values, values, values)
    weights = np.array([1.9] * 10 + [0.1] * 10)
    weighted = tell_verdict({"m": plain}, max_drop=0.01, confidence=CONFIDENCE, weights=weights).measures["m"]
    assert weighted.change == pytest.approx(0.18) and weighted.low > 0
    assert tell_verdict({"m": plain}, max_drop=0.01, confidence=CONFIDENCE).measures["m"].change == pytest.approx(0)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=25))
def test_both_ends_of_an_interval_rise_with_every_difference(rows):
    lower = np.array([value for value, _rise in rows])
    upper = np.minimum(lower + [rise for _value, rise in rows], 1.0)
    tests = paired.Tests(np.column_stack([lower, upper, np.zeros(len(rows))]), seed=1)
    low, high = tests.interval(0, 2, 0.05), tests.interval(1, 2, 0.05)
    assert low[0] <= high[0] + 1e-9 and low[1] <= high[1] + 1e-9
