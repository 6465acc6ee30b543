"""Heat maps. Pure."""

from collections.abc import Mapping, Sequence

from charts.drawing import HEAT, WIDTH, Canvas, clip_text, format_figure, text_width
from charts.record import Chart, Value, finish_chart, finite_or_none, shown_row
from charts.sentences import say


def draw_heatmap(
    key: str,
    title: str,
    rows: Mapping[str, Sequence[Value]],
    columns: Sequence[str],
    *,
    x: str = "",
    y: str = "",
    high: float = 1.0,
    summary: str = "",
    source: str = "",
    links: Mapping[tuple[int, int], str] | None = None,
) -> Chart:
    """Draw a number in each cell, shaded by fifths of `high`. `links`: by (row, column); column 0 has the names."""
    rows = {name: [finite_or_none(value) for value in values] for name, values in rows.items()}
    left = min(200.0, max([text_width(name) for name in rows], default=0) + 32)
    across = (WIDTH - left - 8) / max(len(columns), 1)
    canvas = Canvas(WIDTH, 62 + 32 * len(rows))
    canvas.text(left + across * len(columns) / 2, 14, x, anchor="middle")
    canvas.text(12, 40 + 16 * len(rows), y, anchor="middle", turned=True)
    for index, name in enumerate(columns):
        canvas.text(left + (index + 0.5) * across, 34, clip_text(name, across), anchor="middle")
    for row, (name, values) in enumerate(rows.items()):
        top = 42 + 32 * row
        canvas.text(left - 8, top + 20, clip_text(name, left - 30), anchor="end", kind="ink")
        for index, value in enumerate(values):
            with canvas.mark(shown_row(row, len(rows)), index + 1):
                # The highest value belongs to the darkest fifth; shade 0 is for values below the scale.
                shade = 0 if value is None or value < 0 else min(len(HEAT) - 1, 1 + int(5 * value / (high or 1)))
                canvas.heat(left + index * across, top, across, 32, shade)
                words = clip_text(format_figure(value), across)
                canvas.text(left + (index + 0.5) * across, top + 20, words, anchor="middle", kind="ink")
    if not rows or not columns:
        canvas.text(WIDTH / 2, 42, say("nothing"), anchor="middle")
    table = tuple((name, *values) for name, values in rows.items())
    cells = [
        (value, name, column)
        for name, values in rows.items()
        for column, value in zip(columns, values, strict=True)
        if value is not None
    ]
    if not summary and cells:
        least, most = min(cells), max(cells)
        ends = {"high": format_figure(most[0]), "low": format_figure(least[0])}
        summary = say("grid", row=most[1], column=most[2], low_row=least[1], low_column=least[2], **ends)
    summary = summary or say("nothing")
    # Unlike a bar, a cell of 0 is seen: agreement by chance.
    is_drawn = bool(cells)
    return finish_chart(canvas, key, title, summary, (y, *columns), table, source, is_drawn=is_drawn, links=links)
