"""Paired tests over many systems, Holm's correction, letters, ranks and tables of a report."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmark.report import tabling
from benchmark.report.computing import AspectValues, ReportQuestion, ReportSystem, compute_report
from benchmark.report.verdict import recall_shift
from benchmark.significance import paired
from benchmark.significance import tests as tested
from benchmark.significance.compact_letter_display import compact_letter_display, groups_of


def test_p_of_many_queries_and_holms_correction_by_hand():
    """Of 200 queries ten differ, all one way: two of 1,024 sign patterns."""
    values = np.tile(np.random.default_rng(0).random((200, 1)), (1, 2))
    values[:10, 1] += 0.05
    tests = paired.Tests(values, 0)
    assert tests.p(0, 1) == pytest.approx(2 / 2**10, abs=2e-3) and tests.p(1, 1) == 1.0
    # Ascending 0.01 x 4, 0.02 x 3, 0.03 x 2 = 0.06, 0.04 x 1: below the one before, so 0.06 as well.
    assert paired.holm_correction([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert paired.holm_correction([0.5, 0.9]) == [1.0, 1.0] and paired.holm_correction([]) == []


def test_intervals_hold_the_mean_and_shrink_with_queries():
    few, many = (np.random.default_rng(1).normal(0.1, 1, (queries, 1)) for queries in (50, 5_000))
    found = [paired.Tests(np.column_stack([one, np.zeros(len(one))]), 0).interval(0, 1, 0.05) for one in (few, many)]
    (low, high), (lower, higher) = found
    assert low < few.mean() < high and lower < many.mean() < higher
    assert higher - lower == pytest.approx(2 * 1.96 / 5_000**0.5, rel=0.1)


def gains_together(parts: list[NDArray[np.float64]]) -> dict[str, Any]:
    """One system's gains in the queries of several collections."""
    joined = tested.join_members([tested.Values(np.zeros_like(one), one) for one in parts])
    told = tested.mean_changes(joined)
    tested.add_tests(
        {"hit": told}, {"hit": joined}, ["one"], 0, tested.member_weights([tested.Values(None, one) for one in parts])
    )
    return told[0]


def test_a_p_over_collections_is_that_of_the_mean_of_their_means_whatever_their_size():
    """By every sign pattern of the three and the six queries, on the unweighted mean of both means."""
    random = np.random.default_rng(3)
    parts = [random.normal(0.2, 0.4, (1, queries)) for queries in (3, 6)]
    told = gains_together(parts)
    patterns = [np.array(signs) for signs in product((-1, 1), repeat=9)]
    means = [((signs[:3] * parts[0][0]).mean() + (signs[3:] * parts[1][0]).mean()) / 2 for signs in patterns]
    seen = (parts[0].mean() + parts[1].mean()) / 2
    assert told["change"] == pytest.approx(seen)
    assert told["p"] == pytest.approx(np.mean(np.abs(means) >= abs(seen) - 1e-9))
    # Two queries of one collection gain 0.1 each, eight of another 0.5: the mean gains 0.3, however often drawn.
    told = gains_together([np.full((1, 2), 0.1), np.full((1, 8), 0.5)])
    assert told["change"] == pytest.approx(0.3) and 0 < told["low"] < 0.3 < told["high"]
    assert told["p"] == pytest.approx(2 / 2**10), "all ten one way: two of 1,024 sign patterns"


symmetric = st.integers(2, 8).flatmap(
    lambda systems: st.lists(st.booleans(), min_size=systems**2, max_size=systems**2).map(
        lambda flat: np.triu(np.array(flat).reshape(systems, systems), 1)
    )
)


@given(symmetric)
def test_two_systems_share_a_letter_exactly_when_nothing_tells_them_apart(upper):
    different = upper | upper.T
    given_letters = compact_letter_display(different, range(len(different)))
    for one in range(len(different)):
        for other in range(len(different)):
            assert bool(set(given_letters[one]) & set(given_letters[other])) == (not different[one, other])


def test_letters_by_hand_and_few_of_them_where_few_systems_differ():
    """Three systems in a row: neighbours are alike, the ends are not: a, ab, b."""
    different = np.zeros((3, 3), dtype=bool)
    different[0, 2] = different[2, 0] = True
    assert compact_letter_display(different, [0, 1, 2]) == ["a", "ab", "b"]
    assert compact_letter_display(different, [2, 1, 0]) == ["b", "ab", "a"]
    assert compact_letter_display(np.zeros((3, 3), dtype=bool), [0, 1, 2]) == ["a", "a", "a"]
    # Twelve disjoint pairs that differ: 4,096 largest groups, of which a few cover everything.
    different = np.zeros((25, 25), dtype=bool)
    for one in range(0, 24, 2):
        different[one, one + 1] = different[one + 1, one] = True
    assert 2 <= len(groups_of(different, range(25))) < 20


def test_ranks_and_tau_by_hand():
    assert tested.rank_means([0.5, 0.7, 0.5, 0.2]) == [2, 1, 2, 4]
    assert tested.order_systems([0.5, 0.7, 0.5], ["b", "c", "a"]) == [1, 2, 0]
    assert tested.kendall_tau([3, 2, 1], [3, 1, 2]) == pytest.approx(1 / 3)  # two pairs agree, one does not
    assert tested.kendall_tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / (2 * 3) ** 0.5)  # tau-b: one list ties a pair
    assert tested.kendall_tau([1, 1], [1, 2]) is None
    assert tested.count_swapped([3, 2, 1], [1, 2, 3]) == 3 and tested.count_swapped([3, 2, 2], [3, 1, 2]) == 0


def report(*, names=("=cmd()", "dense_50%"), queries=30, aspects=False):
    """The first system finds a hole in every query, the second the known document."""
    rankings = [{query: np.array(found) for query in range(queries)} for found in ([2, 3], [1, 3])]
    before = {query: (np.array([1]), np.array([1], np.int16)) for query in range(queries)}
    after = {query: (np.array([1, 2]), np.array([1, 1], np.int16)) for query in range(queries)}
    values = {key: np.full((2, 3), 0.25) for key in ("alpha_ndcg", "alpha_ndcg_one", "a_recall", "a_recall_one")}
    systems = [
        ReportSystem(at + 1, name, "bm25", found) for at, (name, found) in enumerate(zip(names, rankings, strict=True))
    ]
    asked = ReportQuestion(
        systems, before, after, k=2, aspects=AspectValues([4, 5, 6], values, 25) if aspects else None
    )
    return compute_report(asked)


def test_filling_lifts_the_underrated_system_and_says_how_surely():
    first, second = report()[0]["systems"]
    value = first["values"]["hit"]
    assert (value["before"], value["after"], value["change"]) == (0, 1, 1)
    assert (value["low"], value["high"]) == (1, 1) and value["p"] == pytest.approx(1 / 10_001)
    assert value["p_holm"] == pytest.approx(2 / 10_001)
    assert (value["rank_before"], value["rank_after"], value["shift"]) == (2, 1, 1)
    assert (value["letters_before"], value["letters_after"]) == ("b", "a")
    same = second["values"]["hit"]
    assert (same["change"], same["p"], same["letters_after"]) == (0, 1, "a")
    order = report()[0]["order"]["hit"]
    assert order == {"tau": None, "moved": 1, "swapped": 0}  # afterwards both are best: nothing is ordered
    result = report()[0]
    assert (result["holes"], result["holes_in_unjudged_queries"]) == (30, 0)
    assert re.findall(r"\d+", recall_shift(result)) == ["2", "30", "60"], "why recall falls where holes were filled"
    assert recall_shift({**result, "relevant": {"before": 30, "after": 30}}) == ""


def test_csv_of_a_table_cannot_act_and_has_changes_and_letters_in_columns():
    lines = tabling.leaderboard_table(report()[0], "hit").csv().splitlines()
    header = ["system", "Hole@2", "Judged@2", "Judged@2 change", "Hit@2", "Hit@2 change", "Hit@2 letters"]
    assert lines[0].split(",")[:7] == header
    assert lines[1].startswith("'=cmd(),0.5,0.5,0.5,1.0,1.0,a")
    [table] = tabling.changes_tables(report()[0], "hit")
    columns = "system,before,after,change,95% from,95% to,p,p (Holm),rank before,rank after"
    assert table.csv().splitlines()[0] == columns


def test_latex_of_a_table_is_escaped_with_the_best_bold_and_the_change_below():
    text = tabling.leaderboard_table(report()[0], "hit").latex()
    assert r"\usepackage{booktabs}" in text and r"\toprule" in text
    row = next(line for line in text.splitlines() if line.startswith("dense"))
    assert row.startswith(r"dense\_50\% &") and row.endswith(r"\\")
    assert r"\textbf{1.000}$_{+1.000}^{\mathrm{a}}$" in text
    assert r"\textbf{1.000}$_{+0.000}^{\mathrm{a}}$" in row  # both print as the best
    assert "0.500" in text and r"\textbf{0.500}" in text


@pytest.mark.parametrize("make", [tabling.measures_table, tabling.growth_table, tabling.marginal_table])
def test_every_table_has_as_many_cells_as_columns(make):
    table = make(report()[0])
    assert table.rows and {len(row) for row in table.rows} == {len(table.header)}
    assert table.csv().count("\n") == len(table.rows) + 1 and table.latex().count(r"\\") >= len(table.rows)


def test_aspects_have_their_own_queries_and_table():
    result, values = report(aspects=True)
    assert result["aspects"] == {"queries": [4, 5, 6], "k": 25}
    assert values["alpha_ndcg"].after.shape == (2, 3)
    value = result["systems"][0]["values"]["alpha_ndcg"]
    assert (value["before"], value["after"], value["rank_after"], value["letters_after"]) == (None, 0.25, 1, "a")
    table = tabling.aspects_table(result)
    assert table is not None and table.header[1:4:2] == ("alpha-nDCG@25", "A-Recall@25")
    assert table.header[2].startswith("alpha-nDCG@25 (one aspect")
    assert tabling.aspects_table(report()[0]) is None


def uneven() -> tuple[dict[str, Any], dict[str, tested.Values]]:
    """The first system answers both queries, the second q0 alone, where it is the better one; q2 is judged later."""
    first = {0: np.array([2, 3]), 1: np.array([1]), 2: np.array([1])}
    second = {0: np.array([1, 3]), 2: np.array([1])}
    grade = (np.array([1]), np.array([1], np.int16))
    before, after = {0: grade, 1: grade}, {0: grade, 1: grade, 2: grade}
    systems = [ReportSystem(1, "first", "bm25", first), ReportSystem(2, "second", "bm25", second)]
    return compute_report(ReportQuestion(systems, before, after, k=2))


def test_the_headline_is_over_the_queries_that_every_system_and_both_versions_have():
    """Over all three queries the first system hits 2/3 and the second 2/3 later; over the common one 0 and 1."""
    result = uneven()[0]
    assert result["common"]["queries"] == 1 and len(result["queries"]) == 3
    assert [one["values"]["hit"]["after"] for one in result["systems"]] == pytest.approx([2 / 3, 2 / 3])
    first = tabling.headline_result(result)
    hits = [one["values"]["hit"] for one in first["systems"]]
    assert [(one["before"], one["after"], one["rank_after"]) for one in hits] == [(0, 0, 2), (1, 1, 1)]
    assert first["means"]["hit"] == {"before": 0.5, "after": 0.5, "change": 0.0}
    assert first["order"]["hit"] == {"tau": 1.0, "moved": 0, "swapped": 0}
    assert (result["holes"], result["holes_in_unjudged_queries"]) == (1, 1), "that of q2 is counted apart"
    common, everything = tabling.changes_tables(result, "hit")
    assert (common.key, everything.key) == ("changes-hit", "changes-hit-all")
    assert [row[0] for row in common.rows] == ["second", "first"] and common.rows[0][1:3] == (1, 1)


def test_interval_and_corrected_p_agree_for_every_system():
    """Nine systems that gain more and more: the interval leaves out 0 exactly where the corrected p is below 0.05."""
    random = np.random.default_rng(7)
    before = random.random((9, 60)) * 0.5
    after = np.clip(before + random.normal(0, 0.15, (9, 60)) + np.linspace(0, 0.12, 9)[:, None], 0, 1)
    told = tested.mean_changes(tested.Values(before, after))
    tested.add_tests({"hit": told}, {"hit": tested.Values(before, after)}, [f"s{at}" for at in range(9)], 0)
    found = [(row["low"] > 0 or row["high"] < 0, row["p_holm"] < 0.05) for row in told]
    assert {one for one, _other in found} == {True, False} and all(one == other for one, other in found)
