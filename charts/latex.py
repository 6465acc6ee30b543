"""Tables as LaTeX for a paper: booktabs, numbers aligned right, cells escaped. Pure."""

from collections.abc import Sequence

Cell = str | float | int | None


class Raw(str):
    """A string that is already LaTeX and is not escaped."""

    __slots__ = ()


SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    "\r": " ",
    "\t": " ",
    "−": "$-$",
    "–": "--",
}


def escape_latex(words: str) -> str:
    """Return the text with LaTeX's special characters escaped."""
    return "".join(SPECIAL.get(letter, letter) for letter in words)


def latex_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: int = 1,
    caption: str = "",
    label: str = "",
    places: int = 4,
) -> str:
    """Return a `table` with a `tabular` of booktabs. Columns before `numbers` are names, the others figures.

    `places`: decimals of floats (integers have none). None is an empty cell. Needs `\\usepackage{booktabs}`.
    """
    columns = "l" * min(numbers, len(header)) + "r" * max(0, len(header) - numbers)
    captions = [rf"\caption{{{escape_latex(caption)}}}"] if caption else []
    labels = [rf"\label{{tab:{label}}}"] if label else []
    return "\n".join([
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", *captions, *labels,
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(header), r"\midrule",
        *(_latex_row([_format_cell(cell, places) for cell in row]) for row in rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell if isinstance(cell, Raw) else escape_latex(cell) for cell in cells) + r" \\"


def _format_cell(cell: Cell, places: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.{places}f}".replace("-", "−")
    return str(cell).replace("-", "−") if isinstance(cell, int) else cell
