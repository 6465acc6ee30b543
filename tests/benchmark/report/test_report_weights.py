"""Means weighted by how often queries were asked, their tests, intervals and bounds, against plain computations."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmark.bounds.order import compute_bounds
from benchmark.measures.graded_runs import Judgments
from benchmark.report.computing import AspectValues, ReportQuestion, ReportSystem, compute_report
from benchmark.significance import paired
from benchmark.significance.pairwise import compare_pairs, mean_intervals
from benchmark.significance.query_weights import effective_queries, weights_by_count

Floats = NDArray[np.float64]
SYSTEMS, K, DOCUMENTS = 3, 3, 6


@st.composite
def worlds(draw: st.DrawFn) -> tuple[ReportQuestion, dict[int, float]]:
    """Some systems on two to seven queries, with two versions of the qrels, and the counts of some queries."""
    queries, random = draw(st.integers(2, 7)), np.random.default_rng(draw(st.integers(0, 10_000)))
    systems = [
        ReportSystem(run, f"s{run}", "bm25", {query: random.permutation(DOCUMENTS)[:K] for query in range(queries)})
        for run in range(1, SYSTEMS + 1)
    ]

    def version(share: float) -> Judgments:
        judged = {}
        for query in range(queries):
            documents = np.sort(random.permutation(DOCUMENTS)[: max(1, int(share * DOCUMENTS))]).astype(np.int64)
            judged[query] = documents, random.integers(0, 4, len(documents)).astype(np.int16)
        return judged

    aspects = AspectValues([0, 1], {"alpha_ndcg": random.random((SYSTEMS, 2))}, K)
    counted = draw(st.lists(st.one_of(st.none(), st.integers(1, 10_000)), min_size=queries, max_size=queries))
    counts = {query: float(count) for query, count in enumerate(counted) if count is not None}
    return ReportQuestion(systems, version(0.4), version(0.9), K, aspects=aspects), counts


def with_counts(question: ReportQuestion, counts: dict[int, float]) -> ReportQuestion:
    return ReportQuestion(
        question.systems, question.before, question.after, question.k, aspects=question.aspects, counts=counts
    )


def share_of_signs(differences: Floats, weights: Floats) -> float:
    """The p of a sign-flip test of the weighted mean, over every pattern of signs, from the definition."""
    observed = abs(np.average(differences, weights=weights))
    means = [abs(np.average(differences * signs, weights=weights)) for signs in product((-1, 1), repeat=len(weights))]
    return float(np.mean([mean >= observed - 1e-9 for mean in means]))


@settings(deadline=None)
@given(worlds())
def test_a_weighted_report_has_the_weighted_means_and_the_p_of_every_sign_pattern(world):
    question, counts = world
    result, values = compute_report(with_counts(question, counts))
    weights = np.array([counts.get(query, 1.0) for query in question.queries])
    assert result["weights"]["without"] == len(weights) - len(counts)
    assert result["weights"]["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    for key, measured in values.items():
        query_weights = weights[:2] if key == "alpha_ndcg" else weights
        for position, system in enumerate(result["systems"]):
            row, after = system["values"][key], measured.after[position]
            assert row["after"] == pytest.approx(np.average(after, weights=query_weights))
            if measured.before is None:
                continue
            before = measured.before[position]
            assert row["before"] == pytest.approx(np.average(before, weights=query_weights))
            assert row["change"] == pytest.approx(row["after"] - row["before"])
            if "p" in row:
                assert row["p"] == pytest.approx(share_of_signs(after - before, query_weights))


@settings(deadline=None)
@given(worlds(), st.integers(1, 10_000))
def test_equal_counts_give_the_plain_report_to_the_last_digit(world, count):
    question, _counts = world
    equal, values = compute_report(with_counts(question, dict.fromkeys(question.queries, float(count))))
    plain, plain_values = compute_report(question)
    assert equal.pop("weights") == {"by": "counts", "without": 0, "effective": len(question.queries)}
    assert equal == plain
    ranking = {key: values[key].after for key in ("ndcg", "recall")}
    weights = weights_by_count([count] * len(question.queries))
    for compute in (compare_pairs, mean_intervals):
        assert compute({key: matrix * weights for key, matrix in ranking.items()}, 0, weights) == compute(
            {key: plain_values[key].after for key in ranking}, 0
        )


@settings(deadline=None)
@given(worlds())
def test_pairs_of_systems_are_tested_on_the_weighted_difference(world):
    """An interval at a level holds exactly the differences that a sign-flip test of the shifted values allows."""
    question, counts = world
    values = compute_report(question)[1]["ndcg"].after
    weights = weights_by_count([counts.get(query) for query in question.queries])
    tests = paired.Tests((values * weights).T, 0, weights)
    for first, second, level in ((0, 1, 0.05), (1, 2, 0.3)):
        differences = values[first] - values[second]
        assert tests.p(first, second) == pytest.approx(share_of_signs(differences, weights))
        low, high = tests.interval(first, second, level)
        assert low <= np.average(differences, weights=weights) <= high
        for inside in (low + 1e-6, high - 1e-6) if high - low > 1e-5 else ():
            assert share_of_signs(differences - inside, weights) >= level
        for outside in (low - 1e-3, high + 1e-3):
            if -1 < outside < 1:
                assert share_of_signs(differences - outside, weights) < level


def test_an_interval_of_a_mean_is_that_of_the_queries_as_often_as_they_count():
    """A query of count 9 among nine of count 1 each pulls the mean, and widens its interval."""
    values = {"ndcg": np.array([[1.0] + [0.5] * 9])}
    weights = weights_by_count([9] + [1] * 9)
    ((low, high),) = mean_intervals({"ndcg": values["ndcg"] * weights}, 0, weights)["ndcg"]
    ((plain_low, plain_high),) = mean_intervals(values, 0)["ndcg"]
    assert low <= 0.75 <= high and high - low > plain_high - plain_low
    assert effective_queries(weights) == pytest.approx(18**2 / 90)


@settings(deadline=None)
@given(worlds())
def test_bounds_of_a_weighted_mean_are_the_weighted_mean_of_the_queries_bounds(world):
    question, counts = world
    rankings = {system.run: system.rankings for system in question.systems}

    def bounds(judged: Judgments, counts: dict[int, float] | None = None) -> dict[str, Any]:
        return compute_bounds(rankings, judged, 3, K, counts_by_query=counts)

    weighted = bounds(question.before, counts)
    by_query = [bounds({query: judgments}) for query, judgments in question.before.items()]
    weights = [counts.get(query, 1.0) for query in question.before]
    for position, system in enumerate(weighted["systems"]):
        for name in ("value", "low", "high", "judged"):
            values = [bounds_of["systems"][position][name] for bounds_of in by_query]
            assert system[name] == pytest.approx(np.average(values, weights=weights))
    assert bounds(question.before, dict.fromkeys(question.before, 7.0)) == bounds(question.before)
