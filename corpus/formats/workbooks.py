"""Sheets of Excel workbooks (.xlsx), a row at a time. Pure."""

import datetime
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary, finalize

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import archives, files
from corpus.formats.cell_values import as_cell
from corpus.formats.files import MAX_COLUMNS, FileSource

# Bytes of a workbook's table of texts, which the library holds in memory.
MAX_TEXTS = 128 << 20
# Excel's own: no sheet has a row with a greater number.
MAX_ROWS = 1_048_576
MAX_SHEETS = 100
# Rows without a filled cell that may follow each other. They cost time and weigh nothing.
MAX_EMPTY_ROWS = 50_000
_TEXTS = "xl/sharedStrings.xml"
# What the library reads whole: everything but the sheets and the texts. Excel has at most 65,490 formats.
_PARTS = re.compile(r"\[Content_Types\]\.xml|_rels/|docProps/|xl/(?:workbook\.xml|styles\.xml|_rels/|theme/)")
_MAX_PARTS, _MAX_TAGS = 16 << 20, 500_000
_SHEET = re.compile(rb"<(?:\w+:)?sheet[\s/>]")
# Of the formats of numbers and dates.
_QUOTED = re.compile(r'"([^"]*)"|\\(.)')
_NO_TEXT = re.compile(r"\[[^\]]*\]|_.|\*.")  # Colours and conditions, and blanks as wide as a letter.
_NUMBER = re.compile(r"[#0,?]*0[#0,?]*(?:\.[0#?]*)?|#[#,?]*")
_DATE_PART = re.compile(r"yyyy|yy|mmmm|mmm|mm|m|dddd|ddd|dd|d|hh|h|ss|s|AM/PM|A/P|\[h+\]|\.0+|[^a-z\[]+", re.IGNORECASE)
_MARK = "\0"


class _Workbook:
    """A workbook that is open for all of its sheets: its texts and formats are read once."""

    def __init__(self, source: FileSource) -> None:
        from openpyxl import load_workbook  # takes a moment, which other imports need not wait for

        self.archive = files.open_archive(source.path)
        _refuse_large_parts(source, self.archive.zip)
        # An open file, for the library looks at the names of others.
        file = source.path.open("rb")
        finalize(self, file.close)
        # Links to other workbooks are not followed, and need not be read.
        self.book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        finalize(self, self.book.close)


_workbooks: WeakValueDictionary[tuple[str, int, int, int], _Workbook] = WeakValueDictionary()


def list_sheets(source: FileSource) -> list[str]:
    """Return the names of a workbook's sheets that hold a cell. Raises BadInput for none, and for a bad workbook."""
    with _open_workbook(source) as book:
        sheets = [sheet.title for sheet in book.worksheets if next(_filled_rows(source, sheet), None)]
    if not sheets:
        raise BadInput(_("%(file)s: the workbook has no filled cell") % {"file": source})
    return sheets


def read_sheet(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, cells) of each filled row, the header's first; without a name: of the first filled sheet."""
    with _open_workbook(source) as book:
        names = [source.member] if source.member else list_sheets(source)
        if names[0] not in book.sheetnames:
            raise BadInput(_("%(file)s: the workbook has no such sheet") % {"file": source})
        width = made = filled = 0
        for number, cells in _filled_rows(source, book[names[0]]):
            width = width or len(cells)
            row = [""] * max(width, max(cells))
            for column, cell in cells.items():
                row[column - 1] = cell
            filled += len(cells)
            made += len(row)
            if files.is_nearly_empty(filled, made):
                raise source.bad(number, _("nearly all cells up to here are empty; delete the empty columns"))
            width = width or len(row)
            yield number, row


def _filled_rows(source: FileSource, sheet: Any) -> Iterator[tuple[int, dict[int, str]]]:
    """Yield (number, filled cells by the number of their column) of each row that has one."""
    from openpyxl.cell.read_only import ReadOnlyCell

    empty = 0
    for number, row in _stored_rows(sheet):
        cells = {}
        for cell in row:
            value = cell["value"]
            # The format is looked up for numbers and dates alone.
            is_shown = value is None or isinstance(value, str)
            if text := as_cell(value if is_shown else show_cell(ReadOnlyCell(sheet, **cell))):
                cells[cell["column"]] = text
        # As the file numbers them: whoever fills the rows between two numbers counts as far as the file says.
        if not 0 < number <= MAX_ROWS or max((cell["column"] for cell in row), default=0) > MAX_COLUMNS:
            said = _("%(file)s: a cell outside of the %(rows)s rows and %(columns)s columns of a sheet; save it again")
            raise BadInput(said % {"file": source, "rows": f"{MAX_ROWS:,}", "columns": f"{MAX_COLUMNS:,}"})
        empty = 0 if cells else empty + 1
        if empty > MAX_EMPTY_ROWS:
            said = _("More than %(most)s empty rows end here; delete them")
            raise source.bad(number, said % {"most": f"{MAX_EMPTY_ROWS:,}"})
        if cells:
            yield number, cells


def _stored_rows(sheet: Any) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (number, cells) of the rows in the file: the library's own would go up to any number it says."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    with sheet._get_source() as part:
        parser = WorkSheetParser(
            part,
            sheet._shared_strings,
            data_only=book.data_only,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        yield from parser.parse()


@contextmanager
def _open_workbook(source: FileSource) -> Iterator[Any]:
    key = files.key_of(source.path)
    try:
        if (workbook := _workbooks.get(key)) is None:
            archives.list_members(source)
            workbook = _workbooks[key] = _Workbook(source)
    except BadInput:
        raise
    except Exception as error:
        # Of zipfile, the XML parser or openpyxl: whichever the damage reaches.
        raise _refusal(source) from error
    source.shared = workbook
    try:
        yield workbook.book
    except (zipfile.BadZipFile, SyntaxError, KeyError, ValueError, EOFError) as error:
        raise _refusal(source) from error


def _refuse_large_parts(source: FileSource, archive: zipfile.ZipFile) -> None:
    """BadInput for what would be read whole and exceeds any person's workbook."""
    sizes = {one.filename: one.file_size for one in archive.infolist()}
    if sizes.get(_TEXTS, 0) > MAX_TEXTS:
        said = _("%(file)s: its texts are more than %(most)s MB; save its sheets as CSV in UTF-8")
        raise BadInput(said % {"file": source, "most": MAX_TEXTS >> 20})
    parts = [name for name in sizes if _PARTS.match(name)]
    tags = _MAX_TAGS + 1 if sum(sizes[name] for name in parts) > _MAX_PARTS else 0
    for name in parts if not tags else ():
        tags += archive.read(name).count(b"<")
    if tags > _MAX_TAGS:
        said = _("%(file)s: its formats and settings are larger than its texts need; save its sheets as CSV in UTF-8")
        raise BadInput(said % {"file": source})
    sheets = len(_SHEET.findall(archive.read("xl/workbook.xml")))
    if sheets > MAX_SHEETS:
        said = _("%(file)s: %(n)s sheets in it; a workbook has at most %(most)s here")
        raise BadInput(said % {"file": source, "n": f"{sheets:,}", "most": MAX_SHEETS})


def _refusal(source: FileSource) -> BadInput:
    return BadInput(_("%(file)s: the workbook is damaged or locked; save it again") % {"file": source})


# Numbers and dates as their cells show them: 00007, 87%, 2026-11-28


def show_number(value: int | float, form: str) -> str:
    """Return a number as its format shows it, without rounding and without marks between thousands.

    A number is an id or a measure here. Of an id the zeros before it, and words and strokes beside
    them, are part of it; of a measure no digit may be lost, and what stands around it would make it
    none.
    """
    sections = form.split(";")
    literals: list[str] = []

    def keep(found: "re.Match[str]") -> str:
        literals.append(found[1] if found[1] is not None else found[2])
        return _MARK

    text = _NO_TEXT.sub("", _QUOTED.sub(keep, sections[0]))
    if form == "General" or re.search(r"[a-zA-Z/@]|[eE][+-]", text) or not re.search(r"[0#]", text):
        return _plain(value)
    if isinstance(value, int) or value.is_integer():
        zeros = re.sub(rf"[{_MARK} -]", "", text)
        if value >= 0 and len(zeros) > 1 and set(zeros) == {"0"}:
            return _show_id(int(value), text, literals, len(zeros))
    percent = "%" in text
    place = _NUMBER.search(text)
    # As many zeros at both ends as the format has.
    whole, _, part = (place[0] if place else "0").replace(",", "").partition(".")
    decimals, shown = part.count("0"), _plain(abs(value) * 100 if percent else abs(value))
    left, _, right = shown.partition(".")
    if left.isdigit() and (not right or right.isdigit()):
        shown = left.zfill(whole.count("0")) + (f".{right.ljust(decimals, '0')}" if right or decimals else "")
    return f"{'-' if value < 0 else ''}{shown}{'%' if percent else ''}"


def _show_id(value: int, form: str, literals: list[str], zeros: int) -> str:
    """Return a number whose format is zeros, with what stands between them: 000-0000 or "Q"000."""
    digits = str(value).zfill(zeros)
    # What has more digits than the format has zeros begins where the first zero stands.
    named, rest = iter(literals), iter(digits[len(digits) - zeros :])
    shown, more = [], digits[: len(digits) - zeros]
    for letter in form:
        if letter == "0":
            shown.append(more + next(rest))
            more = ""
        else:
            shown.append(next(named, "") if letter == _MARK else letter)
    return "".join(shown).strip()


def _plain(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    # Workbooks keep whole numbers as 7.0; and 28.999999999999996 is 0.29 * 100, which nobody wrote.
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


def show_date(value: Any, form: str) -> str:
    """Return a date, a time or both as its format shows it; as 2026-11-28T09:30:00 where the format is not known."""
    if not isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return str(value)
    section = _QUOTED.sub(lambda found: found[1] if found[1] is not None else found[2], form.split(";")[0])
    section = re.sub(r"\[\$[^\]]*\]", "", section)
    parts = _DATE_PART.findall(section)
    if "".join(parts) != section or not re.search(r"[ymdhs]", section, re.IGNORECASE):
        return value.isoformat()
    is_half_day = any(part.upper() in ("AM/PM", "A/P") for part in parts)
    try:
        return "".join(_date_part(value, parts, at, is_half_day) for at in range(len(parts)))
    except (AttributeError, ValueError):
        return value.isoformat()


def _date_part(value: Any, parts: list[str], at: int, is_half_day: bool) -> str:
    part = parts[at].lower()
    letters = [one.lower().strip("[]")[:1] for one in parts]
    # "m" is a minute behind an hour or before a second.
    near = [letter for letter in letters[:at] if letter in "ymdhs"][-1:] == ["h"]
    near = near or [letter for letter in letters[at + 1 :] if letter in "ymdhs"][:1] == ["s"]
    hour = (value.hour - 1) % 12 + 1 if is_half_day and part.startswith("h") else getattr(value, "hour", 0)
    if part in ("m", "mm") and near:
        return f"{value.minute:02}" if part == "mm" else str(value.minute)
    simple = {
        "yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "dddd": "%A", "ddd": "%a", "dd": "%d",
        "ss": "%S", "am/pm": "%p", "a/p": "%p",
    }  # fmt: skip
    if part in simple:
        return str(value.strftime(simple[part]))
    numbers = {"m": "month", "d": "day", "s": "second"}
    if part in numbers:
        return str(getattr(value, numbers[part]))
    if part in ("h", "hh"):
        return f"{hour:02}" if part == "hh" else str(hour)
    return parts[at]


def show_cell(cell: Any) -> Any:
    """Return the value of a cell of openpyxl, numbers and dates as texts."""
    value = cell.value
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return show_number(value, cell.number_format or "General")
    return show_date(value, cell.number_format or "")
