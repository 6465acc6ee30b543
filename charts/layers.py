"""Lineage in columns: names from left to right, and a line from each thing to what was made of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.drawing import WIDTH, Canvas, clip_text, render_svg
from charts.flows import ribbon_path
from charts.record import Chart, name_links, shown_row
from charts.translation import gettext_noop

BAR = 5
STEP = 46  # From the top of one name to that of the next.
HEAD = 28  # For the names of the columns.
THICK = 2.5
TURN = 40  # Px before a column in which a line turns to its place.


@dataclass(frozen=True, slots=True)
class LayerNode:
    """A thing in a column from 0; `sources`: keys of what it was made of. `tone`: as charts.Node has it."""

    key: str
    label: str
    column: int
    note: str = ""
    tone: str = "plain"
    address: str = ""
    sources: tuple[str, ...] = ()


def draw_layers(
    key: str,
    title: str,
    columns: Sequence[str],
    nodes: Sequence[LayerNode],
    *,
    summary: str = "",
    source: str = "",
) -> Chart:
    """Draw each thing below the others of its column, and a line from everything that it was made of.

    The table has a row for each: its column, name and note, and the names of its sources.
    """
    step = WIDTH / max(len(columns), 1)
    places = {node.key: (node.column * step, HEAD + row * STEP) for node, row in _number_rows(nodes)}
    canvas = Canvas(WIDTH, HEAD + STEP * max((row + 1 for _node, row in _number_rows(nodes)), default=1))
    for place, name in enumerate(columns):
        canvas.text(place * step, 14, clip_text(name, step - 8, 13), size=13, kind="ink", bold=True)
    for node in nodes:
        for start in filter(None, map(places.get, node.sources)):
            _draw_line(canvas, start, places[node.key], node.tone)
    for row, node in enumerate(nodes):
        x, y = places[node.key]
        with canvas.mark(shown_row(row, len(nodes))):
            canvas.box(x, y, BAR, STEP - 10, tone=node.tone)
            canvas.text(x + BAR + 6, y + 14, clip_text(node.label, step - BAR - 18, 13), size=13, kind="ink")
            canvas.text(x + BAR + 6, y + 30, clip_text(node.note, step - BAR - 18), size=12)
    labels = {node.key: node.label for node in nodes}
    table = tuple(
        (columns[node.column], node.label, node.note, ", ".join(labels[one] for one in node.sources if one in labels))
        for node in nodes
    )
    counts = [f"{name}: {sum(node.column == place for node in nodes)}" for place, name in enumerate(columns)]
    words = summary or f"{'; '.join(counts)}."
    picture = render_svg(canvas, key=key, title=title, summary=words)
    links = name_links((node.address for node in nodes), column=1)
    header = (gettext_noop("step"), gettext_noop("name"), gettext_noop("details"), gettext_noop("made of"))
    return Chart(key, title, words, picture, header, table, source, canvas.height, numbers=4, links=links)


def _number_rows(nodes: Sequence[LayerNode]) -> list[tuple[LayerNode, int]]:
    """Return each thing with its row in its column, from the top."""
    filled: dict[int, int] = {}
    rows = []
    for node in nodes:
        rows.append((node, filled.get(node.column, 0)))
        filled[node.column] = rows[-1][1] + 1
    return rows


def _draw_line(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], tone: str) -> None:
    """Run below the text of the source, then turn to the place of what was made of it."""
    (x1, y1), (x2, y2) = start, end
    # Straight through the columns between, below the texts of its own row: a diagonal would strike through names.
    below, turn = y1 + STEP - 13, max(x1 + BAR, x2 - TURN)
    canvas.ribbon(ribbon_path(x1 + BAR, below, turn, below, THICK), tone)
    canvas.ribbon(ribbon_path(turn, below, x2, y2 + 14, THICK), tone)
