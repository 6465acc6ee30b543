"""A suite's RAGAlign: the papers' members and their unweighted means, and what blanks a mean."""

import pytest

from benchmark.answers.suites import suite_lines, values_of
from benchmark.answers.tables import suite_tables

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


@pytest.mark.parametrize("lost", [{}, member(0.5, 0.6, complete=False)])
def test_a_member_without_whole_results_blanks_the_mean(table6, lost):
    lines = suite_lines([*table6, lost])
    assert [line["mean"] for line in lines] == [None, None]
    assert lines[0]["values"][-1] is None and lines[0]["values"][0]["before"] == 0.59


def test_means_over_other_systems_do_not_compare(table6):
    lines = suite_lines([*table6, member(0.5, 0.6, systems=("bm25", "dense"))])
    assert {line["system"]: line["mean"] is None for line in lines} == {"": True, "bm25": False, "dense": True}


def test_the_table_to_take_away_has_both_values_of_each_member(table6):
    tables = suite_tables("main", 10, [f"m{n}" for n in range(7)], suite_lines(table6))
    first, graded = (table.csv().splitlines()[1].split(",") for table in tables)
    assert first[:4] == ["mean", "llama", "0.59", "0.88"]
    assert first[-2:] == [repr(sum(ORIGINAL) / 7), repr(sum(BRIDGE) / 7)]
    assert list(map(float, graded[-2:])) == pytest.approx([sum(ORIGINAL) / 14, sum(BRIDGE) / 14])
