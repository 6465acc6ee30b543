"""Points of two values. Pure."""

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
    """A point with a name; `series` groups them. `quiet`: named in the table alone; `mark`: why it has a ring."""

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
    """Draw points, named where at most 24 have a name to show and it meets no other.

    `diagonal`: the line of equal values; `floor`: a value of y that points should reach, and what it is.
    """
    kept = [dot for dot in dots if math.isfinite(dot.x) and math.isfinite(dot.y)]
    groups = list(dict.fromkeys(dot.series for dot in kept))
    canvas = Canvas(WIDTH, 360)
    if not kept:
        canvas.text(WIDTH / 2, 180, empty or say("nothing"), anchor="middle")
    else:
        xs, ys = [dot.x for dot in kept], [dot.y for dot in kept] + ([floor[0]] if floor else [])
        both = [*xs, *ys]
        # With a diagonal both axes have one scale, or the line of equal values would not be one.
        x_ticks = axis_ticks(min(both), max(both)) if diagonal else axis_ticks(min(xs), max(xs), 6)
        y_ticks = x_ticks if diagonal else axis_ticks(min(ys), max(ys))
        room = min(180.0, max(text_width(group) for group in groups) + 40)
        plot = Plot(tick_room(y_ticks), 14, WIDTH - room, 312, x_ticks, y_ticks)
        plot.axes(canvas, x, y)
        if floor:
            canvas.rule(plot.left, plot.y(floor[0]), plot.right, plot.y(floor[0]), kind="soft", dash="4 4")
            canvas.text(plot.right - 4, plot.y(floor[0]) - 5, f"{floor[1]} {format_figure(floor[0])}", anchor="end")
        if diagonal:
            canvas.rule(plot.left, plot.bottom, plot.right, plot.top, kind="soft")
        _draw_dots(canvas, plot, kept, groups)
    said = say("points", figure=format_figure(len(kept)), x=x, y=y) if kept else empty or say("nothing")
    table = tuple((dot.label, dot.series, dot.x, dot.y) for dot in kept)
    links, header = name_links(dot.address for dot in kept), ("name", "group", x, y)
    return finish_chart(canvas, key, title, summary or said, header, table, source, links=links, numbers=2)


def _draw_dots(canvas: Canvas, plot: Plot, kept: Sequence[Dot], groups: Sequence[str]) -> None:
    # Beyond so many names the picture is all text; the table has every name.
    named = sum(not dot.quiet for dot in kept) <= 24
    taken = [(plot.x(dot.x) - 4, plot.y(dot.y) - 4, plot.x(dot.x) + 4, plot.y(dot.y) + 4) for dot in kept]
    for row, dot in enumerate(kept):
        place, x, y = groups.index(dot.series), plot.x(dot.x), plot.y(dot.y)
        with canvas.series(place), canvas.mark(shown_row(row, len(kept))):
            canvas.dot(x, y, place, hollow=bool(place % 2))
            if dot.mark:
                canvas.ring(x, y)
            words = clip_text(f"{dot.label} ({dot.mark})" if dot.mark else dot.label, 360)
            gap = 13 if dot.mark else 9  # A ring is wider than a dot.
            is_named = words and (dot.mark or (named and not dot.quiet))
            if is_named and (at := _find_room(plot, words, (x, y), gap, taken)):
                canvas.text(*at, words, kind="ink" if dot.mark else "soft")
    for place, group in enumerate(groups):
        if group:
            with canvas.series(place):
                canvas.dot(plot.right + 16, 22 + place * 18, place, hollow=bool(place % 2))
                words = clip_text(group, WIDTH - plot.right - 28)
                canvas.text(plot.right + 26, 26 + place * 18, words, kind=f"s{place % len(SERIES)}")


def _find_room(
    plot: Plot, words: str, point: tuple[float, float], gap: int, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float] | None:
    """Return (and take) a place for a point's name, `gap` px away, if free; else None."""
    (x, y), wide = point, text_width(words) * 1.05
    places = [(x + gap, y + 4), (x - gap - wide, y + 4), (x - wide / 2, y + 11 + gap), (x - wide / 2, y - 2 - gap)]
    for left, base in [*places, (x + gap, y - gap), (x - gap - wide, y - gap)]:
        box = (left, base - 10, left + wide, base + 3)
        inside = plot.left <= box[0] and box[2] <= plot.right + 4 and plot.top <= box[1] and box[3] <= plot.bottom
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return left, base
    return None
