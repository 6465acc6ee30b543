"""Intervals of values: a line for each name, with its value as a dot. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.drawing import WIDTH, Canvas, Plot, axis_ticks, clip_text, format_figure, text_width
from charts.record import Chart, finish_chart, name_links, shown_row
from charts.sentences import say
from charts.translation import gettext_noop

STEP = 30


@dataclass(frozen=True, slots=True)
class IntervalSpan:
    """A value between `low` and `high`; `open`: its order against another is not settled."""

    name: str
    value: float
    low: float
    high: float
    open: bool = False
    address: str = ""


def draw_intervals(
    key: str,
    title: str,
    spans: Sequence[IntervalSpan],
    *,
    x: str,
    summary: str = "",
    source: str = "",
    kind: str = gettext_noop("system"),
    limit: float | None = None,
) -> Chart:
    """Draw a line for each name: its interval as a bar, the value as a dot (hollow where open).

    `kind`: what the names are of, as the table's first column; `limit`: a value that is marked by an upright line.
    """
    canvas = Canvas(WIDTH, 60 + STEP * max(1, len(spans)))
    if spans:
        room = min(220.0, 1.15 * max(text_width(span.name) for span in spans) + 24)
        values = [end for span in spans for end in (span.low, span.high)] + ([] if limit is None else [limit])
        across = axis_ticks(min(values), max(values))
        plot = Plot(room, 8, WIDTH - 130, 16 + STEP * len(spans), across, [0.0, 1.0])
        for at in across:
            canvas.rule(plot.x(at), plot.top, plot.x(at), plot.bottom)
            canvas.text(plot.x(at), plot.bottom + 16, format_figure(at), anchor="middle")
        canvas.text((plot.left + plot.right) / 2, plot.bottom + 36, x, anchor="middle")
        if limit is not None:
            canvas.rule(plot.x(limit), plot.top, plot.x(limit), plot.bottom, kind="soft", width=2)
        for index, span in enumerate(spans):
            middle, left, right = 24 + STEP * index, plot.x(span.low), plot.x(span.high)
            with canvas.mark(shown_row(index, len(spans))):
                canvas.text(plot.left - 12, middle + 4, clip_text(span.name, plot.left - 20), anchor="end", kind="ink")
                # An interval without width still needs a mark to point at.
                canvas.box(left, middle - 6, max(right - left, 2), 12, tone="warn" if span.open else "data", pale=True)
                for end in (left, right):
                    canvas.rule(end, middle - 8, end, middle + 8, kind="soft", width=1.5)
                canvas.dot(plot.x(span.value), middle, 1 if span.open else 0, radius=4.5, hollow=span.open)
                canvas.text(WIDTH - 4, middle + 4, f"{span.low:.3f} – {span.high:.3f}".replace("-", "−"), anchor="end")
    else:
        canvas.text(WIDTH / 2, 40, say("nothing"), anchor="middle")
    if spans and not summary:
        widest = max(spans, key=lambda span: span.high - span.low)
        ends = {"low": f"{widest.low:.3f}", "high": f"{widest.high:.3f}"}
        summary = say("widest", measure=x, name=widest.name, value=f"{widest.value:.3f}", **ends)
    words = summary or say("nothing")
    rows = tuple((span.name, span.value, span.low, span.high, span.high - span.low) for span in spans)
    header = (kind, x, gettext_noop("at least"), gettext_noop("at most"), gettext_noop("width"))
    links = name_links(span.address for span in spans)
    return finish_chart(canvas, key, title, words, header, rows, source, is_drawn=bool(spans), links=links)
