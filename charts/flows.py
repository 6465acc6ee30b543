"""Flow charts: bars in columns, and ribbons between them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from charts.drawing import WIDTH, Canvas, clip_text, format_figure, number
from charts.record import Chart, any_size, finish_chart, name_links
from charts.sentences import say

HEIGHT = 180
BAR = 12
GAP = 12
SLOT = 36  # Minimum height of a node with its two lines of text.


@dataclass(frozen=True, slots=True)
class Node:
    """A count with a name, in a column from 0. `tone`: plain, data, warn, danger, good, quiet."""

    key: str
    label: str
    count: int
    column: int
    tone: str = "plain"
    address: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A ribbon from one node to another, for `count` things."""

    source: str
    target: str
    count: int


def draw_flow(
    key: str,
    title: str,
    nodes: Sequence[Node],
    links: Sequence[Link],
    *,
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw nodes and links with heights by their counts; nodes have room for text, and counts above 0 stay visible."""
    visible = [node for node in nodes if node.count or node.column == 0]
    names = {node.key: node for node in visible}
    ribbons = [link for link in links if link.count and link.source in names and link.target in names]
    # One scale, by the first column, so that equal counts have equal heights everywhere.
    scale = HEIGHT / max(1, *(node.count for node in visible if node.column == 0))
    # The top of each node, stacked in its column and no higher than the nodes that flow into it.
    tops: dict[str, float] = {}
    for column in sorted({node.column for node in visible}):
        y = 0.0
        for node in (node for node in visible if node.column == column):
            above = [tops[link.source] for link in ribbons if link.target == node.key and link.source in tops]
            y = max(y, min(above, default=0.0))
            tops[node.key] = y
            y += max(_thickness(node.count, scale), SLOT) + GAP
    heights = {node.key: _thickness(node.count, scale) for node in visible}
    columns = max((node.column for node in visible), default=0) + 1
    room = WIDTH / columns - BAR - 16  # For the text beside a bar.
    step = (WIDTH - BAR - room) / max(columns - 1, 1)
    canvas = Canvas(WIDTH, max((tops[key] + max(heights[key], SLOT) for key in tops), default=SLOT) + 4)
    left, right = dict(tops), dict(tops)  # Where the next ribbon leaves each bar, and where it enters.
    for row, link in enumerate(ribbons, len(visible)):
        start, end = names[link.source], names[link.target]
        height = _thickness(link.count, scale)
        x1, y1, x2, y2 = start.column * step + BAR, left[start.key], end.column * step, right[end.key]
        # The outline of a band, whose sides have their upper ends at these points.
        a, b, c, d = map(number, (x1, y1, x2, y2))
        e, f, middle = map(number, (y2 + height, y1 + height, (x1 + x2) / 2))
        with canvas.mark(row):
            canvas.ribbon(
                f"M{a},{b}C{middle},{b} {middle},{d} {c},{d}V{e}C{middle},{e} {middle},{f} {a},{f}Z", end.tone
            )
        left[start.key] += height
        right[end.key] += height
    for row, node in enumerate(visible):
        x, y = node.column * step, tops[node.key]
        with canvas.mark(row):
            canvas.box(x, y, BAR, heights[node.key], tone=node.tone)
            canvas.text(x + BAR + 8, y + 14, format_figure(node.count), size=15, kind="ink", bold=True)
            canvas.text(x + BAR + 8, y + 30, clip_text(node.label, room), size=12)
    if not any(node.count for node in visible):
        canvas.text(WIDTH / 2, 24, say("nothing"), anchor="middle")
    words = summary or ", ".join(f"{format_figure(node.count)} {node.label}" for node in visible) + "."
    table: list[tuple[str, str, int]] = [(_("all"), node.label, node.count) for node in visible]
    table += [(names[link.source].label, names[link.target].label, link.count) for link in ribbons]
    targets = [*visible, *(names[link.target] for link in ribbons)]
    header, addresses = ("from", "to", "count"), name_links((node.address for node in targets), column=1)
    is_drawn = any_size(node.count for node in visible)
    return finish_chart(
        canvas, key, title, words, header, tuple(table), source, is_drawn=is_drawn, links=addresses, numbers=2
    )


def _thickness(count: int, scale: float) -> float:
    """Return the height of a count; counts above 0 stay visible."""
    # A few failed pairs among 300,000 matter to the reader, but would be thinner than a pixel.
    return max(count * scale, 1.5) if count else 0.0
