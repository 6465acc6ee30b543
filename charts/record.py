"""The record of a chart: the picture, a summary in words, and the table of its figures. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from charts.cells import csv_line
from charts.drawing import FONT, INK, INK_2, PAPER, WIDTH, Canvas, format_figure, number
from charts.latex import latex_table

SHOWN_ROWS = 400  # Rows of the page's table, evenly spaced where there are more; the CSV has all.

Value = float | None
Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: `svg` for the page, `summary` in words, `header` and `rows` of its figures.

    `source`: a line in downloaded files about what the figures describe and when. `links`: addresses
    behind cells, by (row, column), to which the marks of the picture also lead.
    """

    key: str
    title: str
    summary: str
    svg: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: str = ""
    height: float = 300.0
    width: float = WIDTH
    numbers: int = 1  # Columns before this one are names, the others figures.
    is_drawn: bool = True  # Where the picture would show nothing, pages have its summary instead.
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def shown(self) -> list[list[tuple[str, str]]]:
        """Return the rows of the page's table: each cell's text, and its address or ""."""
        return [
            [
                (value if isinstance(value, str) else format_figure(value), self.links.get((at, column), ""))
                for column, value in enumerate(self.rows[at])
            ]
            for at in range(0, len(self.rows), _row_step(len(self.rows)))
        ]

    @property
    def left_out(self) -> int:
        """Number of rows that only the CSV has."""
        return len(self.rows) - len(range(0, len(self.rows), _row_step(len(self.rows))))

    def csv(self) -> str:
        """Return the table with all rows, safe to open in spreadsheets."""
        rows = ([("" if cell is None else cell) for cell in row] for row in self.rows)
        return "".join(map(csv_line, [self.header, *rows]))

    def latex(self) -> str:
        """Return the table with all rows, for a paper."""
        return latex_table(self.header, self.rows, numbers=self.numbers, caption=self.title, label=self.key)

    def standalone(self) -> str:
        """Return the picture as a file, with background, title, source line, and colours as attributes."""
        # 36 px above the picture for the title, 28 px below it for the line that names the source.
        height = self.height + 64
        width = number(self.width)
        size = f'width="{width}" height="{number(height)}" viewBox="0 0 {width} {number(height)}"'
        head = f'<rect width="{width}" height="{number(height)}" fill="{PAPER}"/>'
        head += f'<text x="8" y="24" font-size="16" font-weight="650" fill="{INK}">{escape(self.title)}</text>'
        foot = f'<text x="8" y="{number(height - 12)}" font-size="11" fill="{INK_2}">{escape(self.source)}</text>'
        body = self.svg[self.svg.index("</desc>") + len("</desc>") : -len("</svg>")]
        texts = f"<title>{escape(self.title)}</title><desc>{escape(self.summary)}</desc>"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">'
            f'{texts}{head}<g transform="translate(0 36)">{body}</g>{foot}</svg>\n'
        )


def finish_chart(
    canvas: Canvas,
    key: str,
    title: str,
    summary: str,
    header: tuple[str, ...],
    rows: tuple[tuple[Cell, ...], ...],
    source: str,
    *,
    is_drawn: bool,
    links: Mapping[tuple[int, int], str] | None = None,
    numbers: int = 1,
) -> Chart:
    """Return the chart of a painted canvas, with its title and summary also for screen readers."""
    name = escape(key, quote=True)
    # Screen readers get one image with title and summary; numbers and links are in the table (ADR 0019).
    picture = (
        f'<svg class="chart-svg" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(canvas.width)} '
        f'{number(canvas.height)}" role="img" aria-labelledby="{name}-title {name}-desc" font-family="{FONT}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(summary)}</desc>'
        f"{canvas.drawn()}</svg>"
    )
    return Chart(
        key,
        title,
        summary,
        picture,
        header,
        rows,
        source,
        canvas.height,
        numbers=numbers,
        is_drawn=is_drawn,
        links=links or {},
    )


def any_size(values: Iterable[Value]) -> bool:
    """Return whether marks of these sizes show anything: one of them is neither missing nor 0."""
    return any(value for value in values)


def shown_row(row: int, rows: int) -> int:
    """Return the index of a row in the page's table; -1 where only the CSV has it."""
    step = _row_step(rows)
    return -1 if row % step else row // step


def finite_or_none(value: Value) -> Value:
    """Return the value, or None where it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def name_links(addresses: Iterable[str], column: int = 0) -> dict[tuple[int, int], str]:
    """Return the links of rows, at their names in `column`, without empty addresses."""
    return {(row, column): address for row, address in enumerate(addresses) if address}


def _row_step(rows: int) -> int:
    # The same step for marks and table, so that each mark names a row of the page's table.
    return max(1, math.ceil(rows / SHOWN_ROWS))
