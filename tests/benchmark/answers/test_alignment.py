"""RAGAlign against numbers worked out by hand, against numpy, and what has no value."""

import numpy as np
import pytest

from benchmark.answers.alignment import (
    NO_SPREAD,
    AnswerOutcomes,
    RetrievalOutcomes,
    compare_versions,
    correlate,
    graded_align,
    normalise,
)
from benchmark.answers.exact_match import is_exact_match
from benchmark.answers.suites import suite_lines, values_of
from benchmark.answers.tables import suite_tables

HIT = np.array([1, 1, 0, 0, 1, 0], dtype=np.float64)
CORRECT = np.array([1, 0, 0, 1, 1, 0], dtype=np.bool_)
NDCG = np.array([0.9, 0.4, 0.1, 0.2, 0.7, 0])


def test_alignment_by_hand_and_the_graded_one_equals_numpys():
    (cell,) = compare_versions(["a"], ["j"], retrieval(HIT), None, outcomes(CORRECT), 0)["cells"]
    assert cell["align"]["before"] == pytest.approx(0.6667, abs=5e-5)
    value, why = graded_align(NDCG, CORRECT)
    assert (value, why) == (pytest.approx(0.669534, abs=5e-7), "")
    assert value == pytest.approx(np.corrcoef(NDCG, CORRECT.astype(float))[0, 1])
    for found, expected in ((HIT, 0.5), (np.ones(6), 1.0)):
        (cell,) = compare_versions(["a"], ["j"], retrieval(found), None, outcomes(np.ones(6)), 0)["cells"]
        assert cell["align"]["before"] == expected, "a number, too, where all answers are right"
    alike = np.ones(6, dtype=np.bool_)
    assert graded_align(NDCG, alike) == graded_align(NDCG, ~alike) == (None, NO_SPREAD["answers"])
    assert graded_align(np.full(6, 0.3), CORRECT) == (None, NO_SPREAD["retrieval"])
    assert graded_align(NDCG[:1], CORRECT[:1])[0] is None


def outcomes(*rows):
    """(systems, generators, queries) with one generator."""
    found = np.array(rows, dtype=np.bool_)[:, None, :]
    return AnswerOutcomes(found, np.zeros_like(found))


def retrieval(*rows):
    found = np.array(rows, dtype=np.float64)
    return RetrievalOutcomes(found, found)


def test_two_systems_that_swap_are_both_moved_and_one_version_alone_has_no_change():
    before, after = retrieval([1, 1, 0, 0], [1, 0, 0, 0]), retrieval([1, 1, 0, 0], [1, 1, 1, 0])
    found = compare_versions(["a", "b"], ["j"], before, after, outcomes([1, 1, 0, 0], [1, 1, 1, 0]), 0)
    assert found["moved"] == 2
    assert [(one["rank_before"], one["rank_after"]) for one in found["systems"]] == [(1, 2), (2, 1)]
    found = compare_versions(["a"], ["j"], retrieval([1, 0]), None, outcomes([1, 1]), 0)
    assert {key: value for key, value in found["cells"][0]["align"].items() if value is not None} == {"before": 0.5}
    assert found["moved"] is None and found["cells"][0]["graded"]["after"] is None


def test_intervals_are_paired_and_seeded_and_agree_with_p():
    random = np.random.default_rng(7)
    correct = random.random(60) < 0.6
    before = np.where(random.random(60) < 0.5, correct, ~correct).astype(float)
    after = np.where(random.random(60) < 0.95, correct, ~correct).astype(float)
    asked = (["a"], ["j"], retrieval(before), retrieval(after), outcomes(correct), 0)
    one, again = (compare_versions(*asked)["cells"][0]["align"] for _ in range(2))
    assert one == again
    assert one["change"] == pytest.approx(one["after"] - one["before"])
    assert one["low"] < one["change"] < one["high"]
    assert one["p"] < 0.05 and one["low"] > 0
    still = compare_versions(*asked[:3], asked[2], *asked[4:])["cells"][0]["align"]
    assert (still["change"], still["p"]) == (0, 1) and still["low"] <= 0 <= still["high"]


def test_the_mean_over_systems_is_that_of_its_cells():
    before, after = retrieval([1, 0, 1], [0, 0, 1]), retrieval([1, 1, 1], [0, 1, 1])
    found = compare_versions(["a", "b"], ["j"], before, after, outcomes([1, 1, 1], [0, 1, 0]), 0)
    for when in ("before", "after"):
        of_cells = [cell["align"][when] for cell in found["cells"]]
        assert found["means"][0]["align"][when] == pytest.approx(sum(of_cells) / 2)


def test_the_graded_mean_over_systems_is_that_of_point_biserial_correlations():
    """DREAM J.3's formula by hand: the difference of the two means over the spread, times the root of the shares."""
    random = np.random.default_rng(3)
    ndcg, correct = random.random((2, 2, 12)), random.random((2, 1, 12)) < 0.5
    before, after = (RetrievalOutcomes((values > 0.5).astype(float), values) for values in ndcg)
    answers = AnswerOutcomes(correct, np.zeros_like(correct))
    (mean,) = compare_versions(["a", "b"], ["j"], before, after, answers, 0)["means"]

    def point_biserial(values, right):
        ones, zeros = values[right], values[~right]
        share = len(ones) * len(zeros) / len(values) / (len(values) - 1)
        return (ones.mean() - zeros.mean()) / values.std(ddof=1) * share**0.5

    by_hand = [np.mean([point_biserial(one[s], correct[s, 0]) for s in (0, 1)]) for one in ndcg]
    assert [mean["graded"][when] for when in ("before", "after")] == pytest.approx(by_hand)
    assert mean["graded"]["change"] == pytest.approx(by_hand[1] - by_hand[0])
    flat = RetrievalOutcomes(before.hit, np.vstack([before.ndcg[0], np.full(12, 0.5)]))
    (blank,) = compare_versions(["a", "b"], ["j"], flat, after, answers, 0)["means"]
    assert (blank["graded"]["before"], blank["graded"]["change"]) == (None, None)
    assert blank["graded"]["after"] == pytest.approx(by_hand[1])


def test_normalised_values_run_from_nought_to_one_and_equal_ones_have_none():
    assert normalise([0.2, 0.4, 0.3]) == [0.0, 1.0, pytest.approx(0.5)]
    assert normalise([0.2, 0.2]) == [None, None]
    assert correlate([1, 2, 3], [2, 4, 6]) == pytest.approx(1.0)
    assert correlate([1, 2], [2, 4]) is None and correlate([1, 1, 1], [1, 2, 3]) is None


@pytest.mark.parametrize(
    ("answer", "references", "equal"),
    [
        ("The Wright brothers.", ["wright brothers"], True),
        ("In 1903, by the Wright brothers", ["Wright brothers"], False),
        ("an  Airfoil", ["nothing", "airfoil!"], True),
        ("The", ["the"], False),
        ("", [""], False),
        ("巴黎。", ["巴黎"], True),
    ],
)
def test_an_exact_match_minds_neither_case_nor_punctuation_nor_articles(answer, references, equal):
    assert is_exact_match(answer, references) is equal


# DREAM table 6.
ORIGINAL = [0.59, 0.73, 0.76, 0.74, 0.64, 0.67, 0.74]
BRIDGE = [0.88, 0.86, 0.84, 0.81, 0.85, 0.84, 0.81]


def align(before, after):
    return {"before": before, "after": after, "change": after - before}


def member(before, after, *, complete=True, systems=("bm25",)):
    values = {"generator": "llama", "align": align(before, after), "graded": align(before / 2, after / 2)}
    cells, means = [{"system": one, **values} for one in systems], [values]
    return values_of({"complete": complete, "cells": cells, "means": means, "queries": 20})


@pytest.fixture
def table6():
    return [member(*values) for values in zip(ORIGINAL, BRIDGE, strict=True)]


def test_the_mean_over_members_is_unweighted_as_in_the_papers_table(table6):
    over_all, of_bm25 = suite_lines(table6)
    assert over_all["system"] == "" and of_bm25["system"] == "bm25"
    assert over_all["mean"]["before"] == pytest.approx(0.6957, abs=5e-5)
    assert over_all["mean"]["after"] == pytest.approx(0.8414, abs=5e-5)
    assert (f"{over_all['mean']['before']:.2f}", f"{over_all['mean']['after']:.2f}") == ("0.70", "0.84")
    lines = suite_lines([*table6, member(0.5, 0.6, systems=("bm25", "dense"))])
    assert {line["system"]: line["mean"] is None for line in lines} == {"": True, "bm25": False, "dense": True}
    tables = suite_tables("main", 10, [f"m{n}" for n in range(7)], suite_lines(table6))
    first, graded = (table.csv().splitlines()[1].split(",") for table in tables)
    assert first[:4] == ["mean", "llama", "0.59", "0.88"]
    assert first[-2:] == [repr(sum(ORIGINAL) / 7), repr(sum(BRIDGE) / 7)]
    assert list(map(float, graded[-2:])) == pytest.approx([sum(ORIGINAL) / 14, sum(BRIDGE) / 14])


@pytest.mark.parametrize("lost", [{}, member(0.5, 0.6, complete=False)])
def test_a_member_without_whole_results_blanks_the_mean(table6, lost):
    lines = suite_lines([*table6, lost])
    assert [line["mean"] for line in lines] == [None, None]
    assert lines[0]["values"][-1] is None and lines[0]["values"][0]["before"] == 0.59
