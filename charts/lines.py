"""Lines with bands. Pure."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from charts.drawing import (
    CHARACTER,
    SERIES,
    WIDTH,
    Canvas,
    Plot,
    axis_ticks,
    clip_text,
    format_figure,
    spread_labels,
    text_width,
    tick_room,
)
from charts.record import Cell, Chart, Value, finish_chart, shown_row
from charts.sentences import say

T = TypeVar("T", bound=tuple[float, ...])
# Longer lines are thinned for the picture: more than a screen has no more to show.
MOST_POINTS = 400
MOST_MARKS = 80  # Points of a line that can be pointed at.

Curve = Sequence[tuple[float, Value]]
Interval = Sequence[tuple[float, float, float]]


def draw_lines(
    key: str,
    title: str,
    series: Mapping[str, Curve],
    *,
    x: str,
    y: str,
    bands: Mapping[str, Interval] | None = None,
    names: Mapping[float, str] | None = None,
    low: Value = None,
    high: Value = None,
    empty: str = "",
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw lines of (x, y), broken at None, with `bands` (x, low, high); `names`: at x."""
    kept = {name: _finite((at, value) for at, value in points if value is not None) for name, points in series.items()}
    gaps = {name: sorted(at for at, value in points if value is None) for name, points in series.items()}
    behind = {name: _finite(band) for name, band in (bands or {}).items()}
    ys = [value for points in kept.values() for _, value in points]
    ys += [value for band in behind.values() for _, *both in band for value in both]
    xs = [at for points in kept.values() for at, _ in points]
    canvas = Canvas(WIDTH, 300)
    if not xs:
        canvas.text(WIDTH / 2, 150, empty or say("nothing"), anchor="middle")
    else:
        ends = (min(ys) if low is None else low, max(ys) if high is None else high)
        # Names stand at the ends of their lines: a legend would have to be matched by colour.
        room = min(180.0, max(text_width(name) for name in kept) + 16)
        least = 1.0 if all(float(at).is_integer() for at in xs) else 0.0  # what is counted has no halves
        across = axis_ticks(min(xs), max(xs), 6, least=least) if names is None else [min(xs) - 0.5, max(xs) + 0.5]
        upright = axis_ticks(*ends)
        plot = Plot(tick_room(upright), 14, WIDTH - room, 252, across, upright)
        plot.axes(canvas, x, y, None if names is None else _thin_names(names, set(xs)))
        for place, name in enumerate(kept):
            for band in _split_runs(_thin_points(behind.get(name, ())), gaps[name]):
                edge = [(plot.x(at), plot.y(up)) for at, _, up in band]
                with canvas.series(place):
                    canvas.area(edge + [(plot.x(at), plot.y(down)) for at, down, _ in reversed(band)], place)
        _draw_curves(canvas, plot, kept, behind, room, gaps)
    words = summary or ("" if xs else empty) or _summarise_lines(kept, y)
    return finish_chart(canvas, key, title, words, *_line_table(kept, behind, x, names, gaps), source)


def _draw_curves(
    canvas: Canvas,
    plot: Plot,
    kept: Mapping[str, list[tuple[float, float]]],
    behind: Mapping[str, list[tuple[float, float, float]]],
    room: float,
    gaps: Mapping[str, list[float]],
) -> None:
    rows = {at: row for row, at in enumerate(_all_places(kept, gaps))}
    drawn = {name: _thin_points(points) for name, points in kept.items() if points}
    order = sorted(drawn, key=lambda name: plot.y(drawn[name][-1][1]))
    tops = spread_labels([plot.y(drawn[name][-1][1]) + 4 for name in order], plot.top + 4, plot.bottom + 36)
    column = 1
    for place, name in enumerate(kept):
        columns = range(column, column + (3 if behind.get(name) else 1))
        column = columns.stop
        if name not in drawn:
            continue
        points = drawn[name]
        with canvas.series(place):
            for run in _split_runs(points, gaps[name]):
                canvas.curve([(plot.x(at), plot.y(value)) for at, value in run], place)
            step = math.ceil(len(points) / MOST_MARKS)
            for at, value in [*points[:-1:step], points[-1]]:
                with canvas.mark(shown_row(rows[at], len(rows)), *columns):
                    # Dots of a long line would run into one thick line; spots are seen only under the pointer.
                    paint = canvas.dot if len(points) <= 40 else canvas.spot
                    paint(plot.x(at), plot.y(value), place)
            words = clip_text(name, room - 10)
            canvas.text(plot.right + 8, tops[order.index(name)], words, kind=f"s{place % len(SERIES)}")


def _summarise_lines(kept: Mapping[str, list[tuple[float, float]]], y: str) -> str:
    said = [
        say("point", name=name, figure=format_figure(points[0][1]))
        if len(points) == 1
        else say(
            "line",
            name=name,
            first=format_figure(points[0][1]),
            last=format_figure(points[-1][1]),
            least=format_figure(min(value for _, value in points)),
            most=format_figure(max(value for _, value in points)),
        )
        for name, points in kept.items()
        if points
    ]
    return f"{y}: {'; '.join(said)}." if said else say("nothing")


def _line_table(
    kept: Mapping[str, list[tuple[float, float]]],
    behind: Mapping[str, list[tuple[float, float, float]]],
    x: str,
    names: Mapping[float, str] | None,
    gaps: Mapping[str, list[float]],
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    values = {name: dict(points) for name, points in kept.items()}
    edges = {name: {at: (down, up) for at, down, up in band} for name, band in behind.items() if band}
    header = [x]
    for name in values:
        header += [name, say("low", name=name), say("high", name=name)] if name in edges else [name]
    rows: list[tuple[Cell, ...]] = []
    for at in _all_places(kept, gaps):
        row: list[Cell] = [at if names is None else names.get(at, format_figure(at))]
        for name, points in values.items():
            row.append(points.get(at))
            if name in edges:
                row += edges[name].get(at, (None, None))
        rows.append(tuple(row))
    return tuple(header), tuple(rows)


def _all_places(kept: Mapping[str, list[tuple[float, float]]], gaps: Mapping[str, list[float]]) -> list[float]:
    """Return every x of the table, those of gaps too."""
    return sorted({at for points in kept.values() for at, _ in points}.union(*gaps.values()))


def _split_runs(points: Sequence[T], gaps: Sequence[float]) -> list[list[T]]:
    """Return the runs of two points and more that no gap breaks."""
    runs: dict[int, list[T]] = {}
    for point in points:
        runs.setdefault(bisect_left(gaps, point[0]), []).append(point)
    # A point between two gaps makes no line; its dot is drawn with the others.
    return [run for run in runs.values() if len(run) > 1]


def _finite(points: Iterable[T]) -> list[T]:
    """Return the points without those that have a value that is not finite."""
    return [one for one in points if all(math.isfinite(value) for value in one)]


def _thin_points(points: Sequence[T]) -> list[T]:
    # The last point always stays: the summary and the label name it.
    step = max(1, math.ceil(len(points) / MOST_POINTS))
    return [*points[:-1:step], *points[-1:]]


def _thin_names(names: Mapping[float, str], used: set[float]) -> dict[float, str]:
    """Return as many names as stand side by side."""
    places = sorted(at for at in names if at in used)
    widest = max((len(names[at]) for at in places), default=1) * 12 * CHARACTER + 12
    step = max(1, math.ceil(len(places) * widest / (WIDTH - 200)))
    return {at: names[at] for at in places[::step]}
