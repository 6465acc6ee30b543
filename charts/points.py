"""Points of two values. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from charts.drawing import WIDTH, Canvas, Plot, axis_ticks, clip_text, format_figure, render_svg
from charts.record import Chart
from charts.sentences import say


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with a name; `series` groups them. `quiet`: named in the table alone."""

    x: float
    y: float
    label: str = ""
    series: str = ""
    quiet: bool = False


def draw_scatter(
    key: str,
    title: str,
    dots: Sequence[Dot],
    *,
    x: str,
    y: str,
    diagonal: bool = False,
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw points, named where at most 24 have a name to show. `diagonal`: the line of equal values."""
    kept = [dot for dot in dots if math.isfinite(dot.x) and math.isfinite(dot.y)]
    groups = list(dict.fromkeys(dot.series for dot in kept))
    canvas = Canvas(WIDTH, 360)
    if not kept:
        canvas.text(WIDTH / 2, 180, say("nothing"), anchor="middle")
    else:
        xs, ys = [dot.x for dot in kept], [dot.y for dot in kept]
        both = [*xs, *ys]
        x_ticks = axis_ticks(min(both), max(both)) if diagonal else axis_ticks(min(xs), max(xs), 6)
        plot = Plot(64, 14, WIDTH - 140, 312, x_ticks, x_ticks if diagonal else axis_ticks(min(ys), max(ys)))
        plot.axes(canvas, x, y)
        if diagonal:
            canvas.rule(plot.left, plot.bottom, plot.right, plot.top, kind="soft")
        _draw_dots(canvas, plot, kept, groups)
    said = say("points", figure=format_figure(len(kept)), x=x, y=y) if kept else say("nothing")
    words = summary or said
    picture = render_svg(canvas, key=key, title=title, summary=words)
    table = tuple((dot.label, dot.series, dot.x, dot.y) for dot in kept)
    return Chart(key, title, words, picture, ("name", "group", x, y), table, source, canvas.height, numbers=2)


def _draw_dots(canvas: Canvas, plot: Plot, kept: Sequence[Dot], groups: Sequence[str]) -> None:
    named = sum(not dot.quiet for dot in kept) <= 24
    for dot in kept:
        place = groups.index(dot.series)
        canvas.dot(plot.x(dot.x), plot.y(dot.y), place, hollow=bool(place % 2))
        if named and dot.label and not dot.quiet:
            canvas.text(plot.x(dot.x) + 7, plot.y(dot.y) + 4, clip_text(dot.label, 150))
    for place, group in enumerate(groups):
        if group:
            canvas.dot(plot.right + 14, 22 + place * 18, place, hollow=bool(place % 2))
            canvas.text(plot.right + 24, 26 + place * 18, clip_text(group, 114), kind="ink")
