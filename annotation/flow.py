"""The picture of a campaign: where its pairs flow, as positions for an SVG. Pure arithmetic, no drawing library."""

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 720
HEIGHT = 168
COLUMNS = (0, 270, 540)
BAR = 12
GAP = 12
SLOT = 36
"""The least height of a node with its two lines of text."""


@dataclass(frozen=True, slots=True)
class Node:
    """A bar at (x, y) of `height`; `key` says what it counts. Text goes at `text_x`, from `y`."""

    key: str
    label: str
    count: int
    x: int
    y: float
    height: float

    @property
    def text_x(self) -> int:
        """Where the text beside the bar begins."""
        return self.x + BAR + 10


@dataclass(frozen=True, slots=True)
class Band:
    """Pairs that went from one node to another: the `d` of an SVG path."""

    key: str
    path: str


@dataclass(frozen=True, slots=True)
class Flow:
    """Everything to draw, in a box of `width` x `height`."""

    nodes: list[Node]
    bands: list[Band]
    width: int
    height: float


Part = tuple[str, str, int]
"""key, label, count"""


def layout(*, pairs: int, outcomes: Iterable[Part], people: Iterable[Part], through: str) -> Flow:
    """Nodes and bands: `pairs` flow to `outcomes`, and the outcome named `through` flows on to `people`.

    Heights are in proportion to counts; a node keeps room for its text, and any count above 0 stays visible.
    """
    scale = HEIGHT / max(pairs, 1)
    second = _column([part for part in outcomes if part[2]], COLUMNS[1], scale, top=0.0)
    start = next((node for node in second if node.key == through), None)
    third = _column(
        [part for part in people if part[2]] if start else [], COLUMNS[2], scale, top=start.y if start else 0.0
    )
    first = Node("pairs", "pairs", pairs, COLUMNS[0], 0.0, HEIGHT)
    bands = _bands(first, second, scale) + (_bands(start, third, scale) if start else [])
    bottom = max(node.y + max(node.height, SLOT) for node in [first, *second, *third])
    return Flow([first, *second, *third], bands, WIDTH, round(bottom + 2, 1))


def _column(parts: list[Part], x: int, scale: float, top: float) -> list[Node]:
    nodes, y = [], top
    for key, label, count in parts:
        height = _thick(count, scale)
        nodes.append(Node(key, label, count, x, round(y, 1), height))
        y += max(height, SLOT) + GAP
    return nodes


def _bands(source: Node, targets: list[Node], scale: float) -> list[Band]:
    bands, y = [], source.y
    for target in targets:
        thick = _thick(target.count, scale)
        bands.append(Band(target.key, _curve(source.x + BAR, y, target.x, target.y, thick)))
        y += thick
    return bands


def _curve(x0: int, y0: float, x1: int, y1: float, thick: float) -> str:
    middle = (x0 + x1) / 2
    upper = f"M{x0} {y0:.1f}C{middle} {y0:.1f} {middle} {y1:.1f} {x1} {y1:.1f}"
    lower = f"V{y1 + thick:.1f}C{middle} {y1 + thick:.1f} {middle} {y0 + thick:.1f} {x0} {y0 + thick:.1f}Z"
    return upper + lower


def _thick(count: int, scale: float) -> float:
    return round(max(count * scale, 2.0), 1)
