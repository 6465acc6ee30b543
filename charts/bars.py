"""Bar charts of values with intervals. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from charts.drawing import WIDTH, Canvas, Plot, axis_ticks, clip_text, format_figure, text_width
from charts.record import Chart, Value, any_size, finish_chart, finite_or_none, name_links, shown_row
from charts.sentences import say


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: a value with its interval."""

    label: str
    value: Value
    low: Value = None
    high: Value = None
    n: int | None = None
    words: str = ""  # Shown instead of a missing value.
    detail: str = ""  # A second line.
    address: str = ""  # The page to which the bar links.


def draw_bars(
    key: str,
    title: str,
    rows: Sequence[Bar],
    *,
    x: str,
    high: Value = None,
    mark: tuple[float, str] | None = None,
    empty: str = "",
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw a bar for each value, with its interval. `mark`: a value to compare with, and its name."""
    rows = [
        replace(row, value=finite_or_none(row.value), low=finite_or_none(row.low), high=finite_or_none(row.high))
        for row in rows
    ]
    values = [value for row in rows for value in (row.value, row.high) if value is not None]
    # The axis begins at 0, since bars are compared by length.
    across = axis_ticks(min([0.0, *(row.low for row in rows if row.low is not None)]), high or max(values, default=1.0))
    step = 60 if any(row.detail for row in rows) else 44
    top = 28 if mark else 8
    plot = Plot(8, top, WIDTH - 24, top + 8 + step * max(len(rows), 1), across, [0.0, 1.0])
    canvas = Canvas(WIDTH, plot.bottom + 46)
    for at in across:
        canvas.rule(plot.x(at), plot.top, plot.x(at), plot.bottom)
        end = "start" if at == across[0] else "end" if at == across[-1] else "middle"
        canvas.text(plot.x(at), plot.bottom + 16, format_figure(at), anchor=end)
    canvas.text((plot.left + plot.right) / 2, plot.bottom + 36, x, anchor="middle")
    if mark and across[0] <= mark[0] <= across[-1]:
        at, label = plot.x(mark[0]), f"{mark[1]} {format_figure(mark[0])}"
        end = "start" if at < WIDTH / 2 else "end"
        canvas.text(at + (4 if end == "start" else -4), 16, label, anchor=end, kind="ink")
        canvas.rule(at, 6, at, plot.top + 2, kind="soft", width=1.5)
    for index, row in enumerate(rows):
        with canvas.mark(shown_row(index, len(rows))):
            bar_top, text = plot.top + index * step, _bar_text(row)
            room = plot.right - plot.left
            canvas.text(plot.left, bar_top + 16, clip_text(row.label, room - text_width(text) - 16), kind="ink")
            canvas.text(plot.right, bar_top + 16, text, anchor="end", kind="ink", bold=True)
            if row.detail:
                canvas.text(plot.left, bar_top + 32, clip_text(row.detail, room))
            middle = bar_top + (45 if row.detail else 29)
            if row.value is not None:
                ends = sorted((plot.x(max(plot.x_ticks[0], 0.0)), plot.x(row.value)))
                canvas.box(ends[0], middle - 5, max(ends[1] - ends[0], 1), 10, tone="data", pale=True)
                if row.low is not None and row.high is not None:
                    canvas.rule(plot.x(row.low), middle, plot.x(row.high), middle, kind="ink", width=2)
                    for bound in (row.low, row.high):
                        canvas.rule(plot.x(bound), middle - 7, plot.x(bound), middle + 7, kind="ink", width=2)
        # Only across the bars: a line through the whole picture would cross the labels.
        if mark and row.value is not None:
            canvas.rule(plot.x(mark[0]), middle - 10, plot.x(mark[0]), middle + 10, kind="soft", width=1.5)
    placeholder = empty or say("nothing")
    if not rows:
        canvas.text(WIDTH / 2, plot.top + 24, placeholder, anchor="middle")
    words = summary or " ".join(f"{row.label}: {_bar_text(row)}." for row in rows) or placeholder
    header = ("", "value", "low", "high", "n", "note")
    table = tuple((row.label, row.value, row.low, row.high, row.n, row.detail or row.words) for row in rows)
    links = name_links(row.address for row in rows)
    is_drawn = any_size(bound for row in rows for bound in (row.value, row.low, row.high))
    return finish_chart(canvas, key, title, words, header, table, source, is_drawn=is_drawn, links=links)


def _bar_text(row: Bar) -> str:
    if row.value is None:
        return row.words or _("not measured")
    text = _format_value(row.value)
    if row.low is not None:
        text = say("interval", value=text, low=_format_value(row.low), high=_format_value(row.high))
    return f"{text}, n = {format_figure(row.n)}" if row.n is not None else text


def _format_value(value: Value) -> str:
    """Return small values with two decimals, so that they can be compared."""
    return f"{value:.2f}".replace("-", "−") if value is not None and abs(value) < 10 else format_figure(value)
