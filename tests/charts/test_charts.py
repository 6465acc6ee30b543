"""Charts drawn on the server: what they say and what stands behind them, their marks, and nothing that acts."""

import csv
import math
from io import StringIO
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from charts import (
    Bar,
    BumpPlace,
    Chart,
    Dot,
    IntervalSpan,
    Link,
    Node,
    draw_bars,
    draw_bump,
    draw_differences,
    draw_flow,
    draw_heatmap,
    draw_intervals,
    draw_lines,
    draw_scatter,
)
from charts.drawing import axis_ticks, spread_labels, text_width
from charts.record import SHOWN_ROWS
from charts.sentences import say

NASTY = '=1+1 <b onmouseover="x">&'


def every() -> list[Chart]:
    nodes = [Node("pairs", "pairs", 100, 0), Node("a", "agreed", 90, 1, "data"), Node("b", NASTY, 10, 1, "warn")]
    bands = {"a": [(1, 0.4, 0.6), (2, 0.5, 0.7)]}
    bars = [Bar(NASTY, 0.9, 0.8, 0.95, 40), Bar("b", None, words="not measured")]
    places = [BumpPlace(NASTY, 1, 2, 0.5, 0.4), BumpPlace("b", 2, 1)]
    spans = [IntervalSpan(NASTY, 0.5, 0.4, 0.7, open=True), IntervalSpan("b", 0.3, 0.3, 0.3)]
    return [
        draw_lines("loss", "Loss", {NASTY: [(1, 2.0), (2, 1.0)], "dev": [(2, 1.5)]}, x="step", y="loss"),
        draw_lines("none", "Nothing", {"a": []}, x="step", y="loss"),
        draw_lines("band", "Band", {"a": [(1, 0.5), (2, 0.6)]}, x="week", y="kappa", bands=bands),
        draw_bars("audit", "Audits", bars, x="share right"),
        draw_scatter("cost", "Cost", [Dot(1, 2, NASTY), Dot(2, 3, "b", "people")], x="USD", y="kappa", diagonal=True),
        draw_heatmap("grid", "Grid", {NASTY: [0.1, None], "b": [-0.2, 1.0]}, ["c", "d"], x="length", y="score"),
        draw_flow("flow", "Flow", nodes, [Link("pairs", "a", 90), Link("pairs", "b", 10)]),
        draw_bump("ranks", "Ranks", places, x=("before", "after"), y="nDCG@10"),
        draw_intervals("spans", "Spans", spans, x="nDCG@10"),
    ]


@pytest.mark.parametrize("chart", every(), ids=lambda chart: chart.key)
def test_a_picture_is_named_described_and_carries_nothing_that_acts(chart: Chart) -> None:
    for text in (chart.svg, chart.standalone()):
        root = ElementTree.fromstring(text)
        words = [child.text for child in root if child.tag.endswith(("title", "desc"))]
        assert (root.get("role"), words) == ("img", [chart.title, chart.summary])
        for element in root.iter():
            assert element.tag.rpartition("}")[2] not in {"script", "style", "a", "image"}
            assert not [name for name in element.attrib if name == "style" or name.startswith("on")]
    told = Chart(chart.key, chart.title, chart.summary, chart.svg, chart.header, chart.rows, "campaign 7, 21 Nov")
    saved = list(ElementTree.fromstring(told.standalone()).iter())
    assert "campaign 7, 21 Nov" in [element.text for element in saved]
    painted = [one for one in saved if one.tag.endswith(("rect", "circle", "polyline", "path", "line"))]
    assert all(element.get("fill") or element.get("stroke") for element in painted), "it keeps its colours"


def test_a_table_has_every_point_and_interval_and_no_formula() -> None:
    lines, bars = every()[0], every()[3]
    rows = list(csv.reader(StringIO(lines.csv())))
    assert rows == [["step", "'" + NASTY, "dev"], ["1", "2.0", ""], ["2", "1.0", "1.5"]]
    assert "0.90 (0.80 to 0.95), n = 40" in bars.summary and "b: not measured." in bars.summary
    assert bars.rows[1] == ("b", None, None, None, None, "not measured")


def test_what_is_not_finite_is_left_out_and_a_line_is_broken_where_a_value_is_missing() -> None:
    line = draw_lines("nan", "Loss", {"a": [(1, 1.0), (2, float("nan")), (3, 2.0)]}, x="step", y="loss")
    assert "nan" not in line.svg.replace("nan-", "") and [row[0] for row in line.rows] == [1, 3]
    grid = draw_heatmap("g", "G", {"a": [math.nan, 0.5], "b": [math.inf, None]}, ["x", "y"])
    assert grid.rows == (("a", None, 0.5), ("b", None, None)) and "nan" not in grid.svg and "inf" not in grid.svg
    bars = draw_bars("b", "B", [Bar("a", math.nan), Bar("b", 0.4, math.nan, 0.6)], x="share")
    assert [row[1:4] for row in bars.rows] == [(None, None, None), (0.4, None, 0.6)] and "nan" not in bars.svg
    assert [cell for cell, _address in bars.shown[0]][1] == "–"
    points = [(1, 1.0), (2, 2.0), (3, None), (4, 4.0), (5, 5.0), (6, None), (7, 7.0)]
    bands = {"a": [(at, value - 1, value + 1) for at, value in points if value is not None]}
    chart = draw_lines("gap", "Gap", {"a": points}, x="step", y="loss", bands=bands)
    assert chart.svg.count("<polyline") == 2 and chart.svg.count("<polygon") == 2
    assert [row[:2] for row in chart.rows[:4]] == [(1, 1.0), (2, 2.0), (3, None), (4, 4.0)] and len(chart.rows) == 7


def test_ticks_are_round_and_hold_the_values_and_whole_for_what_is_counted() -> None:
    for low, high in [(0, 1), (0, 0), (-3, 7), (0.001, 0.0012), (5, 5), (0, 1e9)]:
        ticks = axis_ticks(low, high)
        assert ticks[0] <= low and ticks[-1] >= high and 2 <= len(ticks) <= 12
    whole = draw_lines("l", "L", {"n": [(1, 0.5), (2, 0.7), (4, 0.9)]}, x="systems", y="rate")
    assert ">1.5<" not in whole.svg and ">3<" in whole.svg
    assert ">1.5<" in draw_lines("l", "L", {"n": [(1, 0.5), (2.5, 0.7), (4, 0.9)]}, x="seconds", y="rate").svg


def test_shares_of_a_flow_are_in_proportion_and_never_invisible() -> None:
    nodes = [Node("p", "pairs", 1_000_000, 0), Node("a", "agreed", 999_999, 1), Node("b", "failed", 1, 1)]
    chart = draw_flow("f", "Flow", nodes, [Link("p", "a", 999_999), Link("p", "b", 1)])
    root = ElementTree.fromstring(chart.svg)
    heights = [float(element.get("height", 0)) for element in root.iter() if element.tag.endswith("rect")]
    assert heights[0] == pytest.approx(heights[1], rel=1e-3) and heights[2] == 1.5
    assert chart.rows[0] == ("all", "pairs", 1_000_000)
    assert chart.rows[3:] == (("pairs", "agreed", 999_999), ("pairs", "failed", 1))


def test_ranks_that_change_are_told_in_words_and_in_the_table() -> None:
    places = [BumpPlace("bm25", 1, 3, 0.5, 0.5), BumpPlace("dense", 2, 1, 0.4, 0.7), BumpPlace("both", 3, 2, 0.3, 0.6)]
    chart = draw_bump("ranks", "Ranks", places, x=("before", "after"), y="nDCG@10")
    assert chart.summary == "By nDCG@10, 3 of 3 systems change rank: bm25 1 to 3; both 3 to 2; dense 2 to 1."
    assert chart.rows[0] == ("bm25", 1, 3, -2, 0.5, 0.5)
    still = [BumpPlace("a", 1, 1), BumpPlace("b", 2, 2)]
    for places, summary in ((still, "By nDCG@10, every system keeps its rank."), ([], say("nothing"))):
        assert draw_bump("ranks", "Ranks", places, x=("before", "after"), y="nDCG@10").summary == summary


def test_a_table_as_latex_escapes_what_latex_would_act_on() -> None:
    chart = draw_intervals("spans", "50% & more", [IntervalSpan("a_b\\input{x}", 0.5, 0.25, 1.0)], x="nDCG@10")
    lines = chart.latex().splitlines()
    assert r"\caption{50\% \& more}" in lines and r"\begin{tabular}{lrrrr}" in lines
    assert r"a\_b\textbackslash{}input\{x\} & 0.5000 & 0.2500 & 1.0000 & 0.7500 \\" in lines


def marks(chart: Chart) -> list[list[int]]:
    found = [element.get("data-at") for element in ElementTree.fromstring(chart.svg).iter()]
    return [[int(part) for part in at.split()] for at in found if at]


def texts(chart: Chart) -> dict[str, tuple[float, float]]:
    elements = [one for one in ElementTree.fromstring(chart.svg).iter() if one.tag.endswith("text")]
    return {one.text or "": (float(one.get("x", 0)), float(one.get("y", 0))) for one in elements}


@pytest.mark.parametrize(
    "chart",
    [*every(), draw_differences("d", "D", [("q1", 0.5), ("q2", -0.1)], y="y", above="a", below="b")],
    ids=lambda chart: chart.key,
)
def test_every_row_has_a_mark_and_every_mark_its_cells(chart: Chart) -> None:
    found = marks(chart)
    assert {row for row, *_ in found} == set(range(len(chart.shown)))
    for row, *columns in found:
        assert all(0 < column < len(chart.shown[row]) for column in columns)


def test_a_point_of_a_line_stands_for_its_own_value_and_band() -> None:
    lines, bands = {"a": [(1, 0.5), (2, 0.6)], "b": [(2, 0.9)]}, {"a": [(1, 0.4, 0.6), (2, 0.5, 0.7)]}
    chart = draw_lines("l", "L", lines, x="x", y="y", bands=bands)
    assert marks(chart) == [[0, 1, 2, 3], [1, 1, 2, 3], [1, 4]]
    assert [text for text, _link in chart.shown[1]] == ["2", "0.6", "0.5", "0.7", "0.9"]


def test_marks_of_a_long_line_stand_for_the_rows_that_are_shown() -> None:
    chart = draw_lines("long", "Long", {"a": [(at, float(at)) for at in range(5_000)]}, x="step", y="loss")
    found = marks(chart)
    assert 40 < len(found) < 200 and len(chart.shown) <= SHOWN_ROWS
    spots = [one for one in ElementTree.fromstring(chart.svg).iter() if one.get("class") == "m s0"]
    shown = [float(chart.shown[row][0][0].replace(",", "")) for row, _column in found]
    heights = [float(one.get("cy", 0)) for one in spots]
    assert shown == sorted(shown) and heights[: len(shown)] == sorted(heights[: len(shown)], reverse=True)
    chart = draw_lines("long", "Long", {"a": [(at, float(at % 7)) for at in range(100_000)]}, x="step", y="loss")
    assert len(chart.svg) < 20_000
    assert len(chart.rows) == 100_000 and chart.left_out == 99_600


def test_a_name_leads_to_what_is_behind_it() -> None:
    bars = draw_bars("b", "B", [Bar("a", 0.5, address="/pairs/?q=1&r=2"), Bar("c", 0.1)], x="x")
    assert [row[0] for row in bars.shown] == [("a", "/pairs/?q=1&r=2"), ("c", "")]
    grid = draw_heatmap("g", "G", {"a": [1, 2]}, ["c", "d"], links={(0, 2): "?cell=1"})
    assert [link for _text, link in grid.shown[0]] == ["", "", "?cell=1"]


def test_names_of_points_and_of_lines_do_not_meet() -> None:
    dots = [Dot(0.5 + at / 100, 0.5, f"policy number {at}") for at in range(12)] + [Dot(0, 0), Dot(1, 1)]
    chart = draw_scatter("s", "S", dots, x="x", y="y")
    named = [(x, y, x + text_width(words), y) for words, (x, y) in texts(chart).items() if words.startswith("policy")]
    assert len(named) >= 2
    assert not [1 for a, b in combinations(named, 2) if abs(a[1] - b[1]) < 12 and a[0] < b[2] and b[0] < a[2]]
    lines = texts(draw_lines("l", "L", {f"line {at}": [(1, 0.5), (2, 0.5)] for at in range(12)}, x="x", y="y"))
    ends = sorted(y for words, (_x, y) in lines.items() if words.startswith("line"))
    assert min(b - a for a, b in pairwise(ends)) >= 14 and ends[-1] <= 300
    assert spread_labels([10, 12, 50], 0, 60) == [10, 25, 50]
    assert spread_labels([58, 59, 60], 0, 60) == [30, 45, 60]


def test_what_is_current_and_what_is_a_limit_has_a_name() -> None:
    dots = [Dot(1, 2, "b", quiet=True, mark="current"), Dot(2, 3, "c")]
    chart = draw_scatter("s", "S", dots, x="x", y="y", floor=(2.5, "floor"))
    assert 'class="ring"' in chart.svg and {"b (current)", "floor 2.5"} <= texts(chart).keys()
    assert "limit 0.9" in texts(draw_bars("b", "B", [Bar("a", 0.5)], x="x", high=1.0, mark=(0.9, "limit")))
    dots = [Dot(1, 1, "one", "s"), Dot(5, 5, "two", "s", mark="now"), Dot(9, 9, "three", "s")]
    root = ElementTree.fromstring(draw_scatter("d", "D", dots, x="x", y="y").svg)
    (ring,) = [element for element in root.iter() if element.get("class") == "ring"]
    (name,) = [element for element in root.iter() if (element.text or "") == "two (now)"]
    assert float(name.get("x", 0)) >= float(ring.get("cx", 0)) + float(ring.get("r", 0)) + 4


def lines_of(*points: tuple[float, float | None]) -> Chart:
    return draw_lines("l", "L", {"a": points}, x="step", y="loss")


def dots_of(count: int) -> Chart:
    return draw_scatter("s", "S", [Dot(n, n, f"d{n}") for n in range(count)], x="x", y="y")


def places_of(count: int) -> Chart:
    return draw_bump("r", "R", [BumpPlace(f"s{n}", n + 1, n + 1) for n in range(count)], x=("a", "b"), y="nDCG")


def flow_of(count: int) -> Chart:
    return draw_flow("f", "F", [Node("p", "pairs", count, 0), Node("a", "a", count, 1)], [Link("p", "a", count)])


def differences_of(*values: float) -> Chart:
    return draw_differences("d", "D", [(f"q{n}", value) for n, value in enumerate(values)], y="y", above="a", below="b")


WHY = "Nobody has voted."
EMPTY = [
    draw_bars("b", "B", [], x="USD"), draw_bars("b", "B", [Bar("a", 0.0), Bar("b", None)], x="USD"), lines_of(),
    lines_of((1, 2.0), (2, None)), dots_of(0), dots_of(1), places_of(1), flow_of(0), draw_heatmap("g", "G", {}, []),
    differences_of(0.0, 0.0), draw_heatmap("g", "G", {"a": [None]}, ["c"]), draw_intervals("i", "I", [], x="nDCG"),
]  # fmt: skip
DRAWN = [
    draw_bars("b", "B", [Bar("a", 0.0), Bar("b", 0.1)], x="USD"), draw_bars("b", "B", [Bar("a", 0.0, 0.0, 0.3)], x="b"),
    lines_of((1, 2.0), (2, 1.0)), dots_of(2), places_of(2), flow_of(3), differences_of(0.0, 0.1),
    draw_heatmap("g", "G", {"a": [0.0]}, ["c"]), draw_intervals("i", "I", [IntervalSpan("a", 0.5, 0.4, 0.6)], x="nDCG"),
]  # fmt: skip


def test_a_chart_that_shows_nothing_is_a_sentence() -> None:
    assert (
        [chart.key for chart in EMPTY if chart.is_drawn] == [chart.key for chart in DRAWN if not chart.is_drawn] == []
    )
    assert all(chart.summary for chart in (*EMPTY, *DRAWN))
    for chart in (draw_bars("b", "B", [], x="x", empty=WHY), draw_lines("l", "L", {}, x="x", y="y", empty=WHY)):
        assert chart.summary == WHY and {WHY, say("nothing")} & texts(chart).keys() and not marks(chart)
    assert dots_of(1).summary == "d0: x 0, y 0.", "a single point is said in words"


def test_no_line_joins_names() -> None:
    names = {0.0: "bm25", 1.0: "dense"}
    points = {"retrieval": [(0.0, 0.2), (1.0, 0.9)]}
    assert "<polyline" in draw_lines("l", "L", points, x="day", y="y", names=names).svg
    assert "<polyline" not in draw_lines("l", "L", points, x="system", y="y", names=names, is_ordered=False).svg
