"""A report's table for people: inert CSV, LaTeX for a paper, JSON. Pure."""

import json
from dataclasses import dataclass

from charts.cells import csv_line
from charts.latex import Raw, escape_latex, latex_table

PLACES = 3  # Decimals of a Figure in LaTeX; CSV has all.


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value; LaTeX shows its change as a subscript, and the letters above."""

    value: float | None
    change: float | None = None
    letters: str = ""

    @property
    def printed(self) -> str:
        """The value alone, as LaTeX shows it."""
        return "" if self.value is None else f"{self.value:.{PLACES}f}"


Cell = str | float | int | None | Figure


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
        """Write every value in full; changes and letters in columns behind their figures."""
        return "".join(csv_line(["" if value is None else value for value in line]) for line in self._plain_rows())

    def json(self) -> str:
        """Write the same columns as `csv` does, with null for a blank cell."""
        header, *rows = self._plain_rows()
        told = {"table": self.key, "title": self.title, "columns": header, "rows": rows}
        return json.dumps(told, ensure_ascii=False, indent=1) + "\n"

    def _plain_rows(self) -> list[tuple[Cell, ...]]:
        """Return the header and the rows with every Figure as a number."""
        columns: list[list[Cell]] = []
        for at, name in enumerate(self.header):
            cells = [row[at] for row in self.rows]
            figures = [cell if isinstance(cell, Figure) else Figure(None) for cell in cells]
            columns.append([name, *(cell.value if isinstance(cell, Figure) else cell for cell in cells)])
            # A column of changes, or of letters, stands only where at least one row has some.
            if any(one.change is not None for one in figures):
                columns.append([f"{name} change", *(one.change for one in figures)])
            if any(one.letters for one in figures):
                columns.append([f"{name} letters", *(one.letters for one in figures)])
        return list(zip(*columns, strict=True))

    def latex(self) -> str:
        """Write a `table` with booktabs: the best in bold, changes as subscripts. Needs `\\usepackage{booktabs}`."""
        # The highest figure of a column as it is printed; None where the column has no figure.
        tops: dict[int, str | None] = {}
        for at in self.best:
            figures = [cell for row in self.rows if isinstance(cell := row[at], Figure) and cell.value is not None]
            tops[at] = max(figures, key=lambda one: one.value or 0.0).printed if figures else None
        rows = [[_latex_cell(cell, tops.get(at)) for at, cell in enumerate(row)] for row in self.rows]
        return latex_table(self.header, rows, numbers=self.numbers, caption=self.title, label=self.key)


def _latex_cell(cell: Cell, top: str | None) -> str | float | int | None:
    if not isinstance(cell, Figure):
        return cell
    if cell.value is None:
        return None
    shown = cell.printed.replace("-", "$-$")
    # Bold goes by what is printed: readers who see two equal numbers would ask why one of them is the best.
    shown = rf"\textbf{{{shown}}}" if cell.printed == top else shown
    below = f"_{{{cell.change:+.{PLACES}f}}}" if cell.change is not None else ""
    above = rf"^{{\mathrm{{{escape_latex(cell.letters)}}}}}" if cell.letters else ""
    return Raw(f"{shown}${below}{above}$" if below or above else shown)
