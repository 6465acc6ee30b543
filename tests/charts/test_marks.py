"""Marks of a picture: each stands for cells that the page's table has, and the names of things do not meet."""

from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from charts import Bar, Chart, Dot, draw_bars, draw_differences, draw_heatmap, draw_lines, draw_scatter
from charts.drawing import spread_labels, text_width
from charts.record import SHOWN_ROWS
from charts.sentences import say
from tests.charts.test_charts import every


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


def test_an_empty_picture_says_why() -> None:
    why = "Nobody has voted."
    for chart in (
        draw_bars("b", "B", [], x="x", empty=why),
        draw_scatter("s", "S", [], x="x", y="y", empty=why),
        draw_lines("l", "L", {}, x="x", y="y", empty=why),
        draw_heatmap("g", "G", {}, [], summary=why),
        draw_differences("d", "D", [], y="y", above="a", below="b", summary=why),
    ):
        assert chart.summary == why and {why, say("nothing")} & texts(chart).keys() and not marks(chart)
