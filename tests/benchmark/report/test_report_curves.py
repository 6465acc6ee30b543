"""Growth rate, marginal contribution and the verdict: by hand, and against a simulation that does it the long way."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.measures import arrays as measures
from benchmark.measures.graded_runs import NONE, Version, encode_pairs, stack_rankings
from benchmark.report import curves
from benchmark.report.computing import ReportQuestion, ReportSystem, compute_report
from benchmark.report.verdict import explain_verdict, saturation_verdict

Grades = dict[int, dict[int, int]]


def version(grades: Grades, queries: list[int]) -> Version:
    return Version.of(
        {
            query: (np.array(list(one), np.int64), np.array(list(one.values()), np.int16))
            for query, one in grades.items()
        },
        queries,
    )


def scene(runs: list[list[list[int]]], before: Grades, after: Grades, k: int) -> tuple[Any, ...]:
    """Runs as lists of documents by query, queries 0, 1, ..."""
    queries = list(range(len(runs[0])))
    rankings = [{query: np.array(one[query], np.int64) for query in queries} for one in runs]
    return stack_rankings(rankings, queries, k), version(before, queries), version(after, queries)


# One query. A returns 1 2, B returns 2 3, C returns 3 4 (and so on); 1 is known before, 2, 3 and 4 are holes, 5 is not.
RUNS = [[[1, 2]], [[2, 3]], [[3, 4, 5]]]
BEFORE: Grades = {0: {1: 1}}
AFTER: Grades = {0: {1: 1, 2: 1, 3: 1, 4: 1, 5: 0}}


def test_growth_rate_by_hand():
    """A, B, C find 1, 2, 3 holes: GR is null, (2-1)/1, (3-2)/2. C, B, A find 2, 3, 3: null, 1/2, 0."""
    documents, before, after = scene(RUNS, BEFORE, AFTER, 3)
    found = curves.changed_labels(documents, before, after, 1)
    sizes = curves.pool_sizes(found, np.array([[0, 1, 2], [2, 1, 0]]))
    assert sizes.tolist() == [[1, 2, 3], [2, 3, 3]]
    rates = curves.growth_rates(sizes)
    assert np.isnan(rates[:, 0]).all()
    assert rates[:, 1:].tolist() == [[1.0, 0.5], [0.5, 0.0]]
    bands = curves.mean_bands(rates)
    assert bands[0] == (None, None, None)
    assert bands[1] == pytest.approx((0.75, 0.55, 0.95))  # 10% and 90% of the way from 0.5 to 1
    # Nobody but C finds 4: without C 2 holes are known, with it 3; that is exact, whatever orders were drawn.
    assert curves.last_growth_rates(found).tolist() == [0, 0, 0.5]
    # Where nothing was found before, it is null: A finds 1, which is known, and then B and C find 2.
    documents, before, after = scene([[[1]], [[2]], [[2]]], BEFORE, AFTER, 1)
    sizes = curves.pool_sizes(curves.changed_labels(documents, before, after, 1), np.array([[0, 1, 2]]))
    rates = curves.growth_rates(sizes)
    assert sizes.tolist() == [[0, 1, 1]] and np.isnan(rates[0, :2]).all() and rates[0, 2] == 0


def question(runs: list[list[int]], after: dict[int, int]) -> ReportQuestion:
    systems = [ReportSystem(at, f"s{at}", "bm25", {0: np.array(one, np.int64)}) for at, one in enumerate(runs)]
    judged = {0: (np.array(list(after), np.int64), np.array(list(after.values()), np.int16))}
    return ReportQuestion(systems, {0: (np.array([1]), np.array([1], np.int16))}, judged, k=10)


def test_the_report_says_the_exact_last_rate_and_the_verdict_follows_it():
    """Of twelve systems the last finds 4 holes alone, the others the same 28: 4/28 for one of twelve, else 0.

    Ten drawn orders may never have had it as the last, or twice.
    """
    runs = [list(range(2, 9)) for _ in range(11)] + [list(range(30, 37))]
    asked = question(runs, {document: 1 for document in (*range(1, 9), 30, 31, 32, 33)})
    for seed in range(5):
        result, _values = compute_report(ReportQuestion(asked.systems, asked.before, asked.after, 10, seed=seed))
        assert result["growth"][-1]["rate"] == pytest.approx((4 / 7) / 12)
        assert result["verdict"]["growth"] == result["growth"][-1]["rate"]


def test_where_one_system_finds_every_hole_the_last_step_has_no_rate_and_one_alone_has_no_curves():
    """The others' rates are 0: their mean would call a pool saturated that hangs on one system."""
    result, _values = compute_report(question([[1], [1], [1], [1], [1], [1, 2]], {1: 1, 2: 1}))
    last = result["growth"][-1]
    assert (last["rate"], last["low"], last["high"]) == (None, None, None)
    assert result["verdict"]["key"] == "open" and "Not known" in explain_verdict(result["verdict"])[0]
    rankings = {0: np.array([1, 2])}
    judged = {0: (np.array([1]), np.array([1], np.int16))}
    result, _values = compute_report(ReportQuestion([ReportSystem(1, "one", "bm25", rankings)], judged, judged, k=2))
    assert result["growth"] == [
        {"systems": 1, "holes": 0.0, "holes_low": 0.0, "holes_high": 0.0, "rate": None, "low": None, "high": None}
    ]
    assert result["marginal"] == {"hit": [], "ndcg": [], "recall": []}
    assert result["verdict"]["key"] == "few" and result["systems"][0]["values"]["ndcg"]["letters_after"] == "a"


def test_marginal_contribution_by_hand():
    """The order A, B, C at m = 1. S_1 of A is {B}: pool 2 3; with A: 1 2 3, the same labels, so A moves by 0.

    Recall@3 of B on {A} (labels 1 2): of B's 2 3 only 2 is known, 1/2; with B (1 2 3): 2/3. Moves
    by 1/6. Recall@3 of C on {A} (labels 1 2): 0 of 2; with C (1 2 3 4): 2/4. Moves by 1/2. The mean
    is (0 + 1/6 + 1/2) / 3. Hit@3: A 1 and 1, B 1 and 1, C 0 and 1: 1/3.
    """
    documents, before, after = scene(RUNS, BEFORE, AFTER, 3)
    found = curves.changed_labels(documents, before, after, 1)
    got = curves.marginal_contributions(documents, before, after, found, np.array([[0, 1, 2]]), 1)
    assert got["recall"][0, 0] == pytest.approx((1 / 6 + 1 / 2) / 3)
    assert got["hit"][0, 0] == pytest.approx(1 / 3)
    # m = 2: S_2 of A is {B, C}: 2 3 4 are known already. Of B: {A, C} know 2 and 3. Of C: {A, B}
    # know 3 but not 4: recall 1/3 on labels 1 2 3, and 2/4 with C.
    assert got["recall"][0, 1] == pytest.approx((0 + 0 + 1 / 6) / 3)
    # nDCG of C at m = 2: 3 at rank 1 of three relevant; with C: 3 and 4 at ranks 1 and 2 of four, cut at 3.
    ideal = 1 + 1 / np.log2(3) + 0.5
    assert got["ndcg"][0, 1] == pytest.approx(((1 + 1 / np.log2(3)) / ideal - 1 / ideal) / 3)


def slowly(documents, before, after, order, m, relevant_from):
    """Annotate two datasets for every system and measure it on both."""
    systems, queries, _ = documents.shape
    moved = dict.fromkeys(curves.MARGINAL, 0.0)
    for system in range(systems):
        others = [one for one in order if one != system][:m]
        values = []
        for pool in (others, [*others, system]):
            labels: Grades = {query: dict(before.get(query, {})) for query in range(queries)}
            for one in pool:
                for query in range(queries):
                    for document in documents[one, query]:
                        if document != NONE and document in after.get(query, {}):
                            labels[query][int(document)] = after[query][int(document)]
            annotated = version(labels, list(range(queries)))
            own = documents[system : system + 1]
            graded = measures.Graded(own, annotated.look_up(encode_pairs(own)), annotated, relevant_from)
            values.append({name: float(measures.BY_VERSION[name](graded).mean()) for name in curves.MARGINAL})
        for name in moved:
            moved[name] += abs(values[1][name] - values[0][name]) / systems
    return moved


ranking = st.lists(st.integers(1, 6), max_size=3, unique=True)
labelled = st.dictionaries(st.integers(0, 1), st.dictionaries(st.integers(1, 7), st.integers(0, 3), max_size=6))


@given(st.lists(st.tuples(ranking, ranking), min_size=2, max_size=4), labelled, labelled, st.integers(1, 2), st.data())
def test_marginal_contribution_is_what_annotating_every_pool_gives(runs, before, after, relevant_from, data):
    """Also grades that fall, documents outside every pool, and queries that nobody judged."""
    documents, old, new = scene([list(one) for one in runs], before, after, 3)
    order = data.draw(st.permutations(range(len(runs))))
    found = curves.changed_labels(documents, old, new, relevant_from)
    got = curves.marginal_contributions(documents, old, new, found, np.array([order]), relevant_from)
    for m in range(1, len(runs)):
        expected = slowly(documents, before, after, list(order), m, relevant_from)
        for name in curves.MARGINAL:
            assert got[name][0, m - 1] == pytest.approx(expected[name], abs=1e-12), (name, m)


def test_orders_are_seeded_and_each_holds_every_system():
    orders = curves.random_orders(25, 0)
    assert orders.shape == (10, 25) and (np.sort(orders, axis=1) == np.arange(25)).all()
    assert (orders == curves.random_orders(25, 0)).all() and (orders != curves.random_orders(25, 1)).any()


@pytest.mark.parametrize(
    ("systems", "holes", "growth", "marginal", "key", "said"),
    [
        (4, 10, 0.0, 0.0, "few", "4 systems are too few"),
        (5, 0, None, 0.0, "none", "contains no holes"),
        (5, 10, 0.01, 0.005, "saturated", "Saturated: the last system added 1.0% more holes"),
        (25, 10, 0.0101, 0.005, "nearly", "Nearly saturated"),
        (25, 10, 0.01, 0.0051, "nearly", "by 0.0051"),
        (25, 10, 0.0501, 0.0, "open", "Not saturated: the last system added 5.0% more holes"),
        (25, 10, None, 0.0, "open", "no final value"),
    ],
)
def test_the_verdict_follows_its_rule(systems, holes, growth, marginal, key, said):
    found = saturation_verdict(systems, holes, growth, {"hit": 0.0, "ndcg": marginal})
    told = explain_verdict(found)
    assert found["key"] == key and said in told[0]
    assert "1%" in told[1] and str(systems) in told[2]
