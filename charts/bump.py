"""Changes of rank from one list to another: a slope for each name. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from charts.drawing import SERIES, WIDTH, Canvas, clip_text, format_figure, text_width
from charts.record import Chart, Value, finish_chart, name_links, shown_row
from charts.sentences import say
from charts.translation import gettext_noop

STEP = 26
ROOM = 250.0  # The most px for the names on either side.
BOLD = 1.2  # Bold letters are wider than `text_width` assumes.


@dataclass(frozen=True, slots=True)
class BumpPlace:
    """A name with rank and value in two lists; rank 1 is the best, equal values share a rank."""

    name: str
    before: int
    after: int
    value_before: Value = None
    value_after: Value = None
    address: str = ""

    @property
    def climbed(self) -> int:
        """Number of ranks gained; below 0: lost."""
        return self.before - self.after


def draw_bump(
    key: str,
    title: str,
    places: Sequence[BumpPlace],
    *,
    x: tuple[str, str],
    y: str,
    source: str = "",
) -> Chart:
    """Draw a slope for each name between the two lists `x`, ranked by `y`: climbed, fallen (dashed), or quiet."""
    rows = sorted(places, key=lambda change: (change.before, change.after, change.name))
    left, right = _assign_slots(rows, "before"), _assign_slots(rows, "after")
    longest = max(
        [text_width(_rank_label(change, side)) for change in rows for side in ("before", "after")], default=60
    )
    room = min(ROOM, BOLD * longest + 16)
    canvas = Canvas(WIDTH, 44 + STEP * max(1, len(rows)))
    canvas.text(room, 16, x[0], anchor="end", kind="ink", bold=True)
    canvas.text(WIDTH - room, 16, x[1], kind="ink", bold=True)
    if not rows:
        canvas.text(WIDTH / 2, 50, say("nothing"), anchor="middle")
    # The largest changes are painted last, on top.
    for change in sorted(rows, key=lambda change: abs(change.climbed)):
        row = rows.index(change)
        with canvas.series(row), canvas.mark(shown_row(row, len(rows))):
            series = 5 if not change.climbed else 0 if change.climbed > 0 else 1
            style: dict[str, Any] = {"kind": "soft"}
            if change.climbed:
                style = {"kind": f"s{series % len(SERIES)}", "bold": True}
            x1, y1, x2, y2 = room + 10, 44 + STEP * left[change.name], WIDTH - room - 10, 44 + STEP * right[change.name]
            canvas.curve([(x1, y1), (x2, y2)], series)
            canvas.dot(x1, y1, series, hollow=change.climbed < 0)
            canvas.dot(x2, y2, series, hollow=change.climbed < 0)
            canvas.text(room, y1 + 4, clip_text(_rank_label(change, "before"), room - 8), anchor="end", **style)
            canvas.text(WIDTH - room, y2 + 4, clip_text(_rank_label(change, "after"), room - 8), **style)
    ranks = tuple(say("rank", when=when) for when in x)
    header = (gettext_noop("system"), *ranks, gettext_noop("ranks gained"), f"{y}, {x[0]}", f"{y}, {x[1]}")
    table = tuple(
        (change.name, change.before, change.after, change.climbed, change.value_before, change.value_after)
        for change in rows
    )
    links = name_links(change.address for change in rows)
    words, is_drawn = _summarise_moves(rows, y), len(rows) > 1
    return finish_chart(canvas, key, title, words, header, table, source, is_drawn=is_drawn, links=links)


def _assign_slots(rows: Sequence[BumpPlace], side: str) -> dict[str, int]:
    """Return the line of each name, counted from the top."""
    return {
        change.name: slot
        for slot, change in enumerate(sorted(rows, key=lambda change: (getattr(change, side), change.name)))
    }


def _rank_label(change: BumpPlace, side: str) -> str:
    """Return a name with its rank nearest to the line: left `bm25  3`, right `3  bm25`."""
    rank = getattr(change, side)
    if side == "before":
        return f"{change.name}  {rank}"
    moved = f" ({change.climbed:+d})".replace("-", "−") if change.climbed else ""
    return f"{rank}  {change.name}{moved}"


def _summarise_moves(rows: Sequence[BumpPlace], y: str) -> str:
    """Describe the changes in words: the six largest, then the number of others."""
    moved = sorted(
        (change for change in rows if change.climbed), key=lambda change: (-abs(change.climbed), change.name)
    )
    if not rows:
        return say("nothing")
    if not moved:
        return say("unmoved", measure=y)
    few = "; ".join(say("move", name=change.name, before=change.before, after=change.after) for change in moved[:6])
    more = len(moved) - 6
    counts = {"moved": format_figure(len(moved)), "all": format_figure(len(rows))}
    if more > 0:
        return say("moved more", measure=y, few=few, more=format_figure(more), **counts)
    return say("moved", measure=y, few=few, **counts)
