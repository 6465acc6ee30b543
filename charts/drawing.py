"""Shapes of charts as SVG, with presentation attributes for files and classes for pages. Pure.

The rules of a stylesheet override presentation attributes, so one text serves both: on a page
`static/css/charts.css` sets the colours (light, dark, high contrast), and a saved file has those
below. There are no styles or scripts in it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

INK, INK_2, GRID, PAPER = "#1d1c1a", "#55524c", "#dedad2", "#ffffff"
# Without the blue and ochre of a debate's sides and the red of alarms.
SERIES = ("#1f6663", "#7b3f72", "#5a6420", "#1d1c1a", "#4d5a66", "#55524c")
DASHES = ("", "7 4", "2 4", "10 3 2 3", "1 3", "14 4")  # Lines differ by dash as well as by colour.
TONES = {
    "plain": "#8d8778",
    "data": "#1f6663",
    "warn": "#7a5200",
    "danger": "#a5271c",
    "good": "#22663f",
    "quiet": "#dedad2",
}
HEAT = ("#ffffff", "#ffffff", "#ebf1f1", "#d7e3e3", "#c0d4d3", "#a5c2c1")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
WIDTH = 960
# Mean width of a letter per font size, good enough to place labels in any font. Chinese characters take 1.
CHARACTER = 0.56


def number(value: float) -> str:
    """Return a coordinate as text, with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def format_figure(value: float | None) -> str:
    """Return a value as people read it: 1,234 or 0.0123; a dash for None."""
    if value is None:
        return "–"
    if value == round(value) and abs(value) < 1e15:
        text = f"{round(value):,}"
    elif abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    # Unlike a hyphen, the minus sign is as wide as a digit and is read aloud as minus.
    return text.replace("-", "−")


def axis_ticks(low: float, high: float, about: int = 5, *, least: float = 0.0) -> list[float]:
    """Return round values (steps of 1, 2, 5, none below `least`) from `low` to `high`."""
    span = (high - low) or abs(high) or 1.0
    rough = max(span / about, least)
    power = 10.0 ** math.floor(math.log10(rough))
    # 0.999: a step may fall short by rounding.
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    # 1e-9: a value that is on a tick except for rounding must not add another tick.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # At least two ticks, since Plot divides by their distance; rounded, since 3 * 0.1 is not 0.3.
    return [round(at * step, 12) for at in range(first, max(last, first + 1) + 1)]


class Canvas:
    """SVG elements in their order. `width` and `height` in px of the view box."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    @contextmanager
    def mark(self, row: int, *columns: int) -> Iterator[None]:
        """Group elements as the mark of a row of the page's table, or of some columns; not for a row below 0."""
        if row >= 0:
            self._parts.append(f'<g data-at="{" ".join(map(str, (row, *columns)))}">')
        yield
        if row >= 0:
            self._parts.append("</g>")

    @contextmanager
    def series(self, index: int) -> Iterator[None]:
        """Group the elements of a series, which a pointer highlights together."""
        self._parts.append(f'<g data-series="{index}">')
        yield
        self._parts.append("</g>")

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: int = 12,
        kind: str = "soft",
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Write words at a point. `kind`: ink | soft | s0..s5; `turned`: read upwards."""
        # The attribute colours a saved file, the class a page (ADR 0019).
        colour = {"ink": INK, "soft": INK_2}.get(kind) or SERIES[int(kind[1:])]
        extra = ' font-weight="650"' if bold else ""
        extra += f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self._parts.append(
            f'<text class="t {kind}" x="{number(x)}" y="{number(y)}" font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}"{extra}>{escape(words)}</text>'
        )

    def rule(
        self, x1: float, y1: float, x2: float, y2: float, *, kind: str = "grid", width: float = 1, dash: str = ""
    ) -> None:
        """Paint a straight line. `kind`: grid | ink | soft."""
        colour = {"grid": GRID, "ink": INK, "soft": INK_2}[kind]
        at = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<line class="l {kind}" {at} stroke="{colour}" stroke-width="{number(width)}"{extra}/>')

    def curve(self, points: Sequence[tuple[float, float]], series: int) -> None:
        """Paint a line through points, in the colour and dash of a series."""
        dash, style = DASHES[series % len(DASHES)], series % len(SERIES)
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<polyline class="c s{style}" points="{_points(points)}" fill="none" '
            f'stroke="{SERIES[style]}" stroke-width="2" stroke-linejoin="round"{extra}/>'
        )

    def area(self, points: Sequence[tuple[float, float]], series: int) -> None:
        """Paint a band behind a line."""
        style = series % len(SERIES)
        at = f'points="{_points(points)}" fill="{SERIES[style]}" fill-opacity="0.14"'
        self._parts.append(f'<polygon class="f s{style}" {at}/>')

    def dot(self, x: float, y: float, series: int, *, radius: float = 3.5, hollow: bool = False) -> None:
        """Paint a point of a series."""
        style, name = series % len(SERIES), "o" if hollow else "f"
        colour = SERIES[style]
        paint = f'fill="{PAPER}" stroke="{colour}" stroke-width="2"' if hollow else f'fill="{colour}"'
        at = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self._parts.append(f'<circle class="{name} s{style}" {at} {paint}/>')

    def spot(self, x: float, y: float, series: int) -> None:
        """Paint a point that is visible only under the pointer."""
        at = f'cx="{number(x)}" cy="{number(y)}" r="4" fill="none"'
        self._parts.append(f'<circle class="m s{series % len(SERIES)}" {at}/>')

    def ring(self, x: float, y: float, radius: float = 8) -> None:
        """Paint a ring around a marked point."""
        at = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self._parts.append(f'<circle class="ring" {at} fill="none" stroke="{INK}" stroke-width="1.5"/>')

    def box(self, x: float, y: float, width: float, height: float, *, tone: str, pale: bool = False) -> None:
        """Paint a filled rectangle of a tone. `pale`: transparent, under other elements."""
        opacity = ' fill-opacity="0.45"' if pale else ""
        at = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._parts.append(f'<rect class="b {tone}" {at} rx="2" fill="{TONES[tone]}"{opacity}/>')

    def heat(self, x: float, y: float, width: float, height: float, step: int) -> None:
        """Paint a cell of a heat map: 0 (below the scale) to 5."""
        at = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._parts.append(f'<rect class="h h{step}" {at} fill="{HEAT[step]}" stroke="{GRID}"/>')

    def ribbon(self, path: str, tone: str) -> None:
        """Paint a filled band between two bars of a flow."""
        self._parts.append(f'<path class="b {tone} ribbon" d="{path}" fill="{TONES[tone]}" fill-opacity="0.22"/>')

    def drawn(self) -> str:
        """Return the elements painted so far."""
        return "".join(self._parts)


@dataclass(frozen=True, slots=True)
class Plot:
    """The box between the axes, and the mapping of values to coordinates."""

    left: float
    top: float
    right: float
    bottom: float
    x_ticks: list[float]
    y_ticks: list[float]

    def x(self, value: float) -> float:
        """Return the x coordinate of a value, in px."""
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the y coordinate of a value, in px from the top."""
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def axes(self, canvas: Canvas, x: str, y: str, names: Mapping[float, str] | None = None) -> None:
        """Draw ticks, rules and titles. `names`: names at values of x instead of ticks."""
        for at in self.y_ticks:
            canvas.rule(self.left, self.y(at), self.right, self.y(at))
            canvas.text(self.left - 8, self.y(at) + 4, format_figure(at), anchor="end")
        for at in self.x_ticks if names is None else names:
            words = format_figure(at) if names is None else names[at]
            canvas.text(self.x(at), self.bottom + 18, words, anchor="middle")
        canvas.rule(self.left, self.bottom, self.right, self.bottom, kind="soft")
        canvas.text((self.left + self.right) / 2, self.bottom + 38, x, anchor="middle")
        canvas.text(14, (self.top + self.bottom) / 2, y, anchor="middle", turned=True)


def tick_room(ticks: Sequence[float]) -> float:
    """Return the left edge of the plot, after the title and the widest tick of the y axis."""
    return max(64.0, 34 + max(text_width(format_figure(at)) for at in ticks))


def spread_labels(tops: Sequence[float], least: float, most: float, step: float = 15) -> list[float]:
    """Return positions for labels wanted at `tops` (ascending): at least `step` px apart, from `least` to `most`."""
    places: list[float] = []
    # Downwards first, moving labels apart; then upwards, to keep the last ones in the room.
    for top in tops:
        places.append(max(top, places[-1] + step if places else least))
    for at in range(len(places) - 1, -1, -1):
        places[at] = min(places[at], most if at == len(places) - 1 else places[at + 1] - step)
    return places


def clip_text(words: str, room: float, size: int = 12) -> str:
    """Return the text, shortened with an ellipsis to fit into `room` px."""
    if text_width(words, size) <= room or len(words) < 2:
        return words
    # With room for the ellipsis, which counts as a letter of full width.
    while len(words) > 1 and text_width(words, size) + size > room:
        words = words[:-1]
    return words.rstrip() + "…"


def text_width(words: str, size: int = 12) -> float:
    """Return the approximate width of a text in px."""
    return sum(1.0 if east_asian_width(letter) in "WF" else CHARACTER for letter in words) * size


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)
