"""A table of a report as people take it away: CSV that nothing can act in, LaTeX for a paper. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.cells import csv_line
from charts.latex import Raw, escape_latex, latex_table

PLACES = 3
"""Decimals of a Figure in LaTeX; CSV has all."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value; in LaTeX what changed against before stands as a subscript, the letters above."""

    value: float | None
    change: float | None = None
    letters: str = ""

    @property
    def printed(self) -> str:
        """The value alone, as LaTeX shows it."""
        return "" if self.value is None else f"{self.value:.{PLACES}f}"


Cell = str | float | int | None | Figure
Flat = str | float | int | None


@dataclass(frozen=True, slots=True)
class DownloadTable:
    """Rows under a header. Columns before `numbers` are names, the others figures; a blank cell is None.

    `best`: columns whose highest Figure is bold in LaTeX, and every other that prints the same.
    """

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: int = 1
    best: frozenset[int] = frozenset()

    def csv(self) -> str:
        """Every value in full; changes and letters in columns of their own behind their figures."""
        columns = [self._column(at) for at in range(len(self.header))]
        header = [name for names, _ in columns for name in names]
        lines: list[Sequence[Flat]] = [header]
        for row in range(len(self.rows)):
            lines.append([value for _, values in columns for value in values[row]])
        return "".join(csv_line(["" if value is None else value for value in line]) for line in lines)

    def latex(self) -> str:
        """A `table` with booktabs: the best in bold, the change as a subscript. Needs `\\usepackage{booktabs}`."""
        tops = {at: self._top(at) for at in self.best}
        rows = [[_latex_cell(cell, tops.get(at)) for at, cell in enumerate(row)] for row in self.rows]
        return latex_table(self.header, rows, numbers=self.numbers, caption=self.title, label=self.key)

    def _column(self, at: int) -> tuple[list[str], list[list[Flat]]]:
        """The column's names and, by row, its values in CSV."""
        cells = [row[at] for row in self.rows]
        figures = [cell for cell in cells if isinstance(cell, Figure)]
        has_change = any(one.change is not None for one in figures)
        has_letters = any(one.letters for one in figures)
        name = self.header[at]
        names = [name, *[f"{name} change"] * has_change, *[f"{name} letters"] * has_letters]
        values: list[list[Flat]] = []
        for cell in cells:
            one = cell if isinstance(cell, Figure) else None
            first = one.value if one else cell
            values.append([
                first if not isinstance(first, Figure) else None,
                *[one.change if one else None] * has_change,
                *[one.letters if one else None] * has_letters,
            ])  # fmt: skip
        return names, values

    def _top(self, at: int) -> str | None:
        """How the highest figure of a column is printed."""
        figures = [cell for row in self.rows if isinstance(cell := row[at], Figure) and cell.value is not None]
        return max(figures, key=lambda one: one.value or 0.0).printed if figures else None


def _latex_cell(cell: Cell, top: str | None) -> Flat:
    if not isinstance(cell, Figure):
        return cell
    if cell.value is None:
        return None
    shown = cell.printed.replace("-", "$-$")
    shown = rf"\textbf{{{shown}}}" if cell.printed == top else shown
    below = f"_{{{cell.change:+.{PLACES}f}}}" if cell.change is not None else ""
    above = rf"^{{\mathrm{{{escape_latex(cell.letters)}}}}}" if cell.letters else ""
    return Raw(f"{shown}${below}{above}$" if below or above else shown)
