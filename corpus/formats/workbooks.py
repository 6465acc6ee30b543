"""Sheets of Excel workbooks (.xlsx), a row at a time. Pure."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import archives
from corpus.formats.cell_values import as_cell
from corpus.formats.files import FileSource
from corpus.formats.shown_cells import show_cell

# Bytes of a workbook's table of texts, which the library holds in memory.
MAX_TEXTS = 128 << 20
_TEXTS = "xl/sharedStrings.xml"


def list_sheets(path: Path, name: str = "") -> list[str]:
    """Return the names of the sheets that hold a cell. `name`: what the user calls the workbook.

    Raises BadInput for a workbook that is damaged, locked or unpacks to what no workbook does, and for an empty one.
    """
    source = FileSource(path, name=name)
    with _open_workbook(source) as workbook:
        sheets = [sheet.title for sheet in workbook.worksheets if next(_filled_rows(sheet), None)]
    if not sheets:
        raise BadInput(_("%(file)s: the workbook has no filled cell") % {"file": source})
    return sheets


def read_sheet(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield (number in the sheet, cells) of each row with a filled cell, the header's first; cells to its right too.

    A source without a sheet's name is the first sheet that holds a cell.
    """
    with _open_workbook(source) as workbook:
        names = [source.member] if source.member else list_sheets(source.path, source.name)
        if names[0] not in workbook.sheetnames:
            raise BadInput(_("%(file)s: the workbook has no such sheet") % {"file": source})
        width = 0
        for number, cells in _filled_rows(workbook[names[0]]):
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))


def _filled_rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    # Some programs write a wrong size of the sheet, by which the library would leave cells out.
    sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [as_cell(show_cell(cell)) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


@contextmanager
def _open_workbook(source: FileSource) -> Iterator[Any]:
    from openpyxl import load_workbook  # takes a moment, which other imports need not wait for

    archives.list_members(source.path, str(source))
    with zipfile.ZipFile(source.path) as archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    if sizes.get(_TEXTS, 0) > MAX_TEXTS:
        said = _("%(file)s: its texts are more than %(most)s MB; save its sheets as CSV in UTF-8")
        raise BadInput(said % {"file": source, "most": MAX_TEXTS >> 20})
    # An open file, for the library looks at the names of others.
    with source.path.open("rb") as file:
        try:
            workbook = load_workbook(file, read_only=True, data_only=True)
        except Exception as error:
            # Of zipfile, the XML parser or openpyxl: whichever the damage reaches.
            raise _refusal(source) from error
        try:
            yield workbook
        except (zipfile.BadZipFile, SyntaxError, KeyError, ValueError, EOFError) as error:
            raise _refusal(source) from error
        finally:
            workbook.close()


def _refusal(source: FileSource) -> BadInput:
    return BadInput(_("%(file)s: the workbook is damaged or locked; save it again") % {"file": source})
