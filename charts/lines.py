"""Line charts with bands. Pure."""

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
# Longer lines are thinned: a screen cannot show more points.
MOST_POINTS = 400
MOST_MARKS = 80  # Points of a line that respond to the pointer.

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
    height: int = 300,
    is_ordered: bool = True,
    empty: str = "",
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw lines of (x, y), interrupted at None, with `bands` of (x, low, high). `names`: names of values of x.

    `is_ordered`: False where x are mere names, such as systems, whose points no line may join.
    """
    curves = {
        name: _finite((at, value) for at, value in points if value is not None) for name, points in series.items()
    }
    gaps = {name: sorted(at for at, value in points if value is None) for name, points in series.items()}
    band_points = {name: _finite(band) for name, band in (bands or {}).items()}
    ys = [value for points in curves.values() for _, value in points]
    ys += [value for band in band_points.values() for _, *both in band for value in both]
    xs = [at for points in curves.values() for at, _ in points]
    canvas = Canvas(WIDTH, height)
    if not xs:
        canvas.text(WIDTH / 2, height / 2, empty or say("nothing"), anchor="middle")
    else:
        ends = (min(ys) if low is None else low, max(ys) if high is None else high)
        # Names are at the ends of their lines, since a legend would have to be matched by colour.
        room = min(180.0, max(text_width(name) for name in curves) + 16)
        least = 1.0 if all(float(at).is_integer() for at in xs) else 0.0  # Counts have no halves.
        across = axis_ticks(min(xs), max(xs), 6, least=least) if names is None else [min(xs) - 0.5, max(xs) + 0.5]
        upright = axis_ticks(*ends)
        plot = Plot(tick_room(upright), 14, WIDTH - room, height - 48, across, upright)
        shown_names = None
        if names is not None:
            # As many names as fit side by side.
            positions = sorted(set(xs) & names.keys())
            widest = max((len(names[at]) for at in positions), default=1) * 12 * CHARACTER + 12
            step = max(1, math.ceil(len(positions) * widest / (WIDTH - 200)))
            shown_names = {at: names[at] for at in positions[::step]}
        plot.axes(canvas, x, y, shown_names)
        for index, name in enumerate(curves):
            for band in _split_runs(_thin_points(band_points.get(name, ())), gaps[name]):
                edge = [(plot.x(at), plot.y(up)) for at, _, up in band]
                with canvas.series(index):
                    canvas.area(edge + [(plot.x(at), plot.y(down)) for at, down, _ in reversed(band)], index)
        _draw_curves(canvas, plot, curves, band_points, room, gaps, is_ordered=is_ordered)
    words = summary or ("" if xs else empty) or _summarise_lines(curves, y)
    # A trend has two points. A single one is a sentence.
    is_drawn = any(len(points) > 1 for points in curves.values())
    table = _line_table(curves, band_points, x, names, gaps)
    return finish_chart(canvas, key, title, words, *table, source, is_drawn=is_drawn)


def _draw_curves(
    canvas: Canvas,
    plot: Plot,
    curves: Mapping[str, list[tuple[float, float]]],
    band_points: Mapping[str, list[tuple[float, float, float]]],
    room: float,
    gaps: Mapping[str, list[float]],
    *,
    is_ordered: bool,
) -> None:
    rows = {at: row for row, at in enumerate(_all_positions(curves, gaps))}
    thinned = {name: _thin_points(points) for name, points in curves.items() if points}
    order = sorted(thinned, key=lambda name: plot.y(thinned[name][-1][1]))
    tops = spread_labels([plot.y(thinned[name][-1][1]) + 4 for name in order], plot.top + 4, plot.bottom + 36)
    column = 1
    for index, name in enumerate(curves):
        columns = range(column, column + (3 if band_points.get(name) else 1))
        column = columns.stop
        if name not in thinned:
            continue
        points = thinned[name]
        with canvas.series(index):
            for run in _split_runs(points, gaps[name]) if is_ordered else ():
                canvas.curve([(plot.x(at), plot.y(value)) for at, value in run], index)
            step = math.ceil(len(points) / MOST_MARKS)
            for at, value in [*points[:-1:step], points[-1]]:
                with canvas.mark(shown_row(rows[at], len(rows)), *columns):
                    # Dots of a long line would merge into a thick one; spots are visible only under the pointer.
                    paint = canvas.dot if len(points) <= 40 else canvas.spot
                    paint(plot.x(at), plot.y(value), index)
            words = clip_text(name, room - 10)
            canvas.text(plot.right + 8, tops[order.index(name)], words, kind=f"s{index % len(SERIES)}")


def _summarise_lines(curves: Mapping[str, list[tuple[float, float]]], y: str) -> str:
    sentences = [
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
        for name, points in curves.items()
        if points
    ]
    return f"{y}: {'; '.join(sentences)}." if sentences else say("nothing")


def _line_table(
    curves: Mapping[str, list[tuple[float, float]]],
    band_points: Mapping[str, list[tuple[float, float, float]]],
    x: str,
    names: Mapping[float, str] | None,
    gaps: Mapping[str, list[float]],
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    values = {name: dict(points) for name, points in curves.items()}
    edges = {name: {at: (down, up) for at, down, up in band} for name, band in band_points.items() if band}
    header = [x]
    for name in values:
        header += [name, say("low", name=name), say("high", name=name)] if name in edges else [name]
    rows: list[tuple[Cell, ...]] = []
    for at in _all_positions(curves, gaps):
        row: list[Cell] = [at if names is None else names.get(at, format_figure(at))]
        for name, points in values.items():
            row.append(points.get(at))
            if name in edges:
                row += edges[name].get(at, (None, None))
        rows.append(tuple(row))
    return tuple(header), tuple(rows)


def _all_positions(curves: Mapping[str, list[tuple[float, float]]], gaps: Mapping[str, list[float]]) -> list[float]:
    """Return all values of x in the table, including gaps."""
    return sorted({at for points in curves.values() for at, _ in points}.union(*gaps.values()))


def _split_runs(points: Sequence[T], gaps: Sequence[float]) -> list[list[T]]:
    """Return the runs of two or more points without a gap."""
    runs: dict[int, list[T]] = {}
    for point in points:
        runs.setdefault(bisect_left(gaps, point[0]), []).append(point)
    # A single point between gaps is no line; its dot is drawn with the others.
    return [run for run in runs.values() if len(run) > 1]


def _finite(points: Iterable[T]) -> list[T]:
    """Return the points whose values are all finite."""
    return [point for point in points if all(math.isfinite(value) for value in point)]


def _thin_points(points: Sequence[T]) -> list[T]:
    # The last point always stays, since the summary and the label show it.
    step = max(1, math.ceil(len(points) / MOST_POINTS))
    return [*points[:-1:step], *points[-1:]]
