"""Tables of reports for download: CSV that is safe in spreadsheets, LaTeX and JSON. Pure."""

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
        """The value as LaTeX shows it, without change and letters."""
        return "" if self.value is None else f"{self.value:.{PLACES}f}"


Cell = str | float | int | None | Figure


@dataclass(frozen=True, slots=True)
class DownloadTable:
    """Rows under a header. Columns before `numbers` are names, the others figures; a blank cell is None.

    `best`: columns in which LaTeX shows the highest Figure in bold, with all that print the same.
    """

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: int = 1
    best: frozenset[int] = frozenset()

    def csv(self) -> str:
        """Return all values with all digits; changes and letters have columns after their figures."""
        return "".join(csv_line(["" if value is None else value for value in line]) for line in self._plain_rows())

    def json(self) -> str:
        """Return the same columns as `csv`, with null for blank cells."""
        header, *rows = self._plain_rows()
        document = {"table": self.key, "title": self.title, "columns": header, "rows": rows}
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    def _plain_rows(self) -> list[tuple[Cell, ...]]:
        """Return the header and the rows, with Figures as numbers."""
        columns: list[list[Cell]] = []
        for at, name in enumerate(self.header):
            cells = [row[at] for row in self.rows]
            figures = [cell if isinstance(cell, Figure) else Figure(None) for cell in cells]
            columns.append([name, *(cell.value if isinstance(cell, Figure) else cell for cell in cells)])
            # Columns of changes and of letters exist only where some row has one.
            if any(figure.change is not None for figure in figures):
                columns.append([f"{name} change", *(figure.change for figure in figures)])
            if any(figure.letters for figure in figures):
                columns.append([f"{name} letters", *(figure.letters for figure in figures)])
        return list(zip(*columns, strict=True))

    def latex(self) -> str:
        """Return a `table` with booktabs: the best in bold, changes as subscripts. Needs `\\usepackage{booktabs}`."""
        # The highest figure of each column, as printed; None where it has no figure.
        tops: dict[int, str | None] = {}
        for at in self.best:
            figures = [cell for row in self.rows if isinstance(cell := row[at], Figure) and cell.value is not None]
            tops[at] = max(figures, key=lambda figure: figure.value or 0.0).printed if figures else None
        rows = [[_latex_cell(cell, tops.get(at)) for at, cell in enumerate(row)] for row in self.rows]
        return latex_table(self.header, rows, numbers=self.numbers, caption=self.title, label=self.key)


def _latex_cell(cell: Cell, top: str | None) -> str | float | int | None:
    if not isinstance(cell, Figure):
        return cell
    if cell.value is None:
        return None
    text = cell.printed.replace("-", "$-$")
    # Printed numbers are compared, so that of two that look equal not only one is bold.
    text = rf"\textbf{{{text}}}" if cell.printed == top else text
    below = f"_{{{cell.change:+.{PLACES}f}}}" if cell.change is not None else ""
    above = rf"^{{\mathrm{{{escape_latex(cell.letters)}}}}}" if cell.letters else ""
    return Raw(f"{text}${below}{above}$" if below or above else text)
