"""Where things go: bars in columns, and ribbons between them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from charts.drawing import WIDTH, Canvas, clip_text, format_figure, number, render_svg
from charts.record import Chart

HEIGHT = 180
BAR = 12
GAP = 12
SLOT = 36  # The least height of a node with its two lines of text.


@dataclass(frozen=True, slots=True)
class Node:
    """A count with a name, in a column from 0. `tone`: plain | accent | warn | danger | good | quiet."""

    key: str
    label: str
    count: int
    column: int
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Link:
    """So many went from one node to another."""

    source: str
    target: str
    count: int


@dataclass(frozen=True, slots=True)
class _Placed:
    node: Node
    x: float
    y: float
    height: float


def draw_flow(
    key: str,
    title: str,
    nodes: Sequence[Node],
    links: Sequence[Link],
    *,
    summary: str = "",
    source: str = "",
) -> Chart:
    """Heights are in proportion to counts; a node keeps room for its text, and any count above 0 stays visible."""
    kept = [node for node in nodes if node.count or node.column == 0]
    names = {node.key: node for node in kept}
    known = [link for link in links if link.count and link.source in names and link.target in names]
    scale = HEIGHT / max(1, *(node.count for node in kept if node.column == 0))
    placed = _place_nodes(kept, known, scale)
    bottom = max((one.y + max(one.height, SLOT) for one in placed.values()), default=SLOT) + 4
    canvas = Canvas(WIDTH, bottom)
    _draw_ribbons(canvas, placed, known, scale)
    room = _label_room(kept)
    for one in placed.values():
        canvas.box(one.x, one.y, BAR, one.height, tone=one.node.tone)
        canvas.text(one.x + BAR + 8, one.y + 14, format_figure(one.node.count), size=15, kind="ink", bold=True)
        canvas.text(one.x + BAR + 8, one.y + 30, clip_text(one.node.label, room), size=12)
    words = summary or ", ".join(f"{format_figure(node.count)} {node.label}" for node in kept) + "."
    table: list[tuple[str, str, int]] = [(_("all"), n.label, n.count) for n in kept if n.column == 0]
    table += [(names[link.source].label, names[link.target].label, link.count) for link in known]
    picture = render_svg(canvas, key=key, title=title, summary=words)
    return Chart(key, title, words, picture, ("from", "to", "count"), tuple(table), source, canvas.height, numbers=2)


def _place_nodes(nodes: Sequence[Node], links: Sequence[Link], scale: float) -> dict[str, _Placed]:
    """Each column from the top; a later one begins no higher than what flows into it."""
    placed: dict[str, _Placed] = {}
    columns = max((node.column for node in nodes), default=0) + 1
    step = (WIDTH - BAR - _label_room(nodes)) / max(columns - 1, 1) if columns > 1 else 0.0
    for column in range(columns):
        y = 0.0
        for node in (one for one in nodes if one.column == column):
            above = [placed[link.source].y for link in links if link.target == node.key and link.source in placed]
            y = max(y, min(above, default=0.0))
            height = _ribbon_thickness(node.count, scale)
            placed[node.key] = _Placed(node, column * step, y, height)
            y += max(height, SLOT) + GAP
    return placed


def _label_room(nodes: Sequence[Node]) -> float:
    """Width of the text beside a bar."""
    columns = max((node.column for node in nodes), default=0) + 1
    return WIDTH / columns - BAR - 16


def _draw_ribbons(canvas: Canvas, placed: dict[str, _Placed], links: Sequence[Link], scale: float) -> None:
    left, right = ({key: one.y for key, one in placed.items()} for _ in range(2))
    for link in links:
        thick = _ribbon_thickness(link.count, scale)
        source, target = placed[link.source], placed[link.target]
        path = _ribbon_path(source.x + BAR, left[link.source], target.x, right[link.target], thick)
        canvas.ribbon(path, target.node.tone)
        left[link.source] += thick
        right[link.target] += thick


def _ribbon_thickness(count: int, scale: float) -> float:
    return max(count * scale, 1.5) if count else 0.0


def _ribbon_path(x1: float, y1: float, x2: float, y2: float, thick: float) -> str:
    middle = number((x1 + x2) / 2)
    a, b, c, d = map(number, (x1, y1, x2, y2))
    e, f = number(y2 + thick), number(y1 + thick)
    return f"M{a},{b}C{middle},{b} {middle},{d} {c},{d}V{e}C{middle},{e} {middle},{f} {a},{f}Z"
