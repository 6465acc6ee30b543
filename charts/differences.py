"""Bar charts of sorted differences. Pure."""

import math
from collections.abc import Sequence

from charts.drawing import WIDTH, Canvas, Plot, axis_ticks, clip_text, format_figure, tick_room
from charts.record import Chart, any_size, finish_chart, name_links, shown_row
from charts.sentences import say
from charts.translation import gettext_noop

MOST_BARS = 240  # Of more values only every n-th is drawn.


def draw_differences(
    key: str,
    title: str,
    bars: Sequence[tuple[str, float]],
    *,
    y: str,
    above: str,
    below: str,
    summary: str = "",
    source: str = "",
    addresses: Sequence[str] = (),
) -> Chart:
    """Draw a bar from 0 for each value, in their order. `above`, `below`: titles of the two sides of 0."""
    canvas = Canvas(WIDTH, 300)
    if bars:
        step = max(1, math.ceil(len(bars) / MOST_BARS))
        values = [value for _name, value in bars[::step]]
        # Symmetric, so that 0 is in the middle.
        largest = max(abs(value) for _name, value in bars) or 1.0
        upright = axis_ticks(-largest, largest)
        plot = Plot(tick_room(upright), 30, WIDTH - 16, 270, [0.0, float(len(values))], upright)
        for at in plot.y_ticks:
            canvas.rule(plot.left, plot.y(at), plot.right, plot.y(at))
            canvas.text(plot.left - 8, plot.y(at) + 4, format_figure(at), anchor="end")
        room = (plot.right - plot.left) / len(values)
        for index, value in enumerate(values):
            ends = sorted((plot.y(0.0), plot.y(value)))
            tone = "data" if value > 0 else "plain"
            left, thick = plot.x(index) + room * 0.1, max(room * 0.8, 1)
            with canvas.mark(shown_row(index * step, len(bars))):
                if abs(value) > 0:
                    canvas.box(left, ends[0], thick, max(ends[1] - ends[0], 1), tone=tone)
        canvas.rule(plot.left, plot.y(0.0), plot.right, plot.y(0.0), kind="soft")
        half = (plot.right - plot.left) / 2
        canvas.text(plot.left, 18, clip_text(above, half), kind="ink", bold=True)
        canvas.text(plot.right, plot.bottom + 20, clip_text(below, half), anchor="end", kind="ink", bold=True)
        middle = (plot.top + plot.bottom) / 2
        canvas.text(14, middle, clip_text(y, plot.bottom - plot.top), anchor="middle", turned=True)
    else:
        canvas.text(WIDTH / 2, 150, say("nothing"), anchor="middle")
    header, words = (gettext_noop("query"), gettext_noop("difference")), summary or say("nothing")
    is_drawn, links = any_size(value for _name, value in bars), name_links(addresses)
    return finish_chart(canvas, key, title, words, header, tuple(bars), source, is_drawn=is_drawn, links=links)
