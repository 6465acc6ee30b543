"""Scatter plots. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from charts.drawing import (
    SERIES,
    WIDTH,
    Canvas,
    Plot,
    axis_ticks,
    clip_text,
    format_figure,
    text_width,
    tick_room,
)
from charts.record import Chart, finish_chart, name_links, shown_row
from charts.sentences import say


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with a name; `series` groups them. `quiet`: named only in the table; `mark`: why it has a ring."""

    x: float
    y: float
    label: str = ""
    series: str = ""
    quiet: bool = False
    mark: str = ""
    address: str = ""


def draw_scatter(
    key: str,
    title: str,
    dots: Sequence[Dot],
    *,
    x: str,
    y: str,
    diagonal: bool = False,
    floor: tuple[float, str] | None = None,
    empty: str = "",
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw points, with names where at most 24 have one and there is room.

    `diagonal`: draw the line of equal values. `floor`: a value of y that points should reach, and its name.
    """
    finite_dots = [dot for dot in dots if math.isfinite(dot.x) and math.isfinite(dot.y)]
    groups = list(dict.fromkeys(dot.series for dot in finite_dots))
    canvas = Canvas(WIDTH, 360)
    if not finite_dots:
        canvas.text(WIDTH / 2, 180, empty or say("nothing"), anchor="middle")
    else:
        xs, ys = [dot.x for dot in finite_dots], [dot.y for dot in finite_dots] + ([floor[0]] if floor else [])
        values = [*xs, *ys]
        # A diagonal needs the same scale on both axes.
        x_ticks = axis_ticks(min(values), max(values)) if diagonal else axis_ticks(min(xs), max(xs), 6)
        y_ticks = x_ticks if diagonal else axis_ticks(min(ys), max(ys))
        room = min(180.0, max(text_width(group) for group in groups) + 40)
        plot = Plot(tick_room(y_ticks), 14, WIDTH - room, 312, x_ticks, y_ticks)
        plot.axes(canvas, x, y)
        if floor:
            canvas.rule(plot.left, plot.y(floor[0]), plot.right, plot.y(floor[0]), kind="soft", dash="4 4")
            canvas.text(plot.right - 4, plot.y(floor[0]) - 5, f"{floor[1]} {format_figure(floor[0])}", anchor="end")
        if diagonal:
            canvas.rule(plot.left, plot.bottom, plot.right, plot.top, kind="soft")
        _draw_dots(canvas, plot, finite_dots, groups)
    if len(finite_dots) == 1:
        (dot,) = finite_dots
        figures = {"x_value": format_figure(dot.x), "y_value": format_figure(dot.y)}
        sentence = say("single", name=dot.label or dot.series, x=x, y=y, **figures)
    else:
        count = format_figure(len(finite_dots))
        sentence = say("points", figure=count, x=x, y=y) if finite_dots else empty or say("nothing")
    table = tuple((dot.label, dot.series, dot.x, dot.y) for dot in finite_dots)
    links, header = name_links(dot.address for dot in finite_dots), ("name", "group", x, y)
    # One point has nothing to be compared with.
    is_drawn = len(finite_dots) > 1
    words = summary or sentence
    return finish_chart(canvas, key, title, words, header, table, source, is_drawn=is_drawn, links=links, numbers=2)


def _draw_dots(canvas: Canvas, plot: Plot, dots: Sequence[Dot], groups: Sequence[str]) -> None:
    # More names would cover the picture; the table has them all.
    has_names = sum(not dot.quiet for dot in dots) <= 24
    taken = [(plot.x(dot.x) - 4, plot.y(dot.y) - 4, plot.x(dot.x) + 4, plot.y(dot.y) + 4) for dot in dots]
    for row, dot in enumerate(dots):
        index, x, y = groups.index(dot.series), plot.x(dot.x), plot.y(dot.y)
        with canvas.series(index), canvas.mark(shown_row(row, len(dots))):
            canvas.dot(x, y, index, hollow=bool(index % 2))
            if dot.mark:
                canvas.ring(x, y)
            words = clip_text(f"{dot.label} ({dot.mark})" if dot.mark else dot.label, 360)
            gap = 13 if dot.mark else 9  # A ring is wider than a dot.
            is_named = words and (dot.mark or (has_names and not dot.quiet))
            if is_named and (at := _find_room(plot, words, (x, y), gap, taken)):
                canvas.text(*at, words, kind="ink" if dot.mark else "soft")
    for index, group in enumerate(groups):
        if group:
            with canvas.series(index):
                canvas.dot(plot.right + 16, 22 + index * 18, index, hollow=bool(index % 2))
                words = clip_text(group, WIDTH - plot.right - 28)
                canvas.text(plot.right + 26, 26 + index * 18, words, kind=f"s{index % len(SERIES)}")


def _find_room(
    plot: Plot, words: str, point: tuple[float, float], gap: int, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float] | None:
    """Find a free position for a point's name, `gap` px away, and add it to `taken`; None where there is none."""
    (x, y), width = point, text_width(words) * 1.05
    positions = [
        (x + gap, y + 4),
        (x - gap - width, y + 4),
        (x - width / 2, y + 11 + gap),
        (x - width / 2, y - 2 - gap),
    ]
    for left, base in [*positions, (x + gap, y - gap), (x - gap - width, y - gap)]:
        box = (left, base - 10, left + width, base + 3)
        inside = plot.left <= box[0] and box[2] <= plot.right + 4 and plot.top <= box[1] and box[3] <= plot.bottom
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return left, base
    return None
