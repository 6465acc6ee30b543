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

# Bytes of a workbook's table of texts, which openpyxl keeps in memory.
MAX_TEXTS = 128 << 20
# The limit of Excel.
MAX_ROWS = 1_048_576
MAX_SHEETS = 100
# The most consecutive empty rows. They take time to read and no bytes in the file.
MAX_EMPTY_ROWS = 50_000
_TEXTS = "xl/sharedStrings.xml"
# Parts that openpyxl reads at once: all but the sheets and the texts. Excel has at most 65,490 formats.
_PARTS = re.compile(r"\[Content_Types\]\.xml|_rels/|docProps/|xl/(?:workbook\.xml|styles\.xml|_rels/|theme/)")
_MAX_PARTS, _MAX_TAGS = 16 << 20, 500_000
_SHEET = re.compile(rb"<(?:\w+:)?sheet[\s/>]")
# Patterns of the formats of numbers and dates.
_QUOTED = re.compile(r'"([^"]*)"|\\(.)')
_NO_TEXT = re.compile(r"\[[^\]]*\]|_.|\*.")  # Colours, conditions, and blanks as wide as a character.
_NUMBER = re.compile(r"[#0,?]*0[#0,?]*(?:\.[0#?]*)?|#[#,?]*")
_DATE_PART = re.compile(r"yyyy|yy|mmmm|mmm|mm|m|dddd|ddd|dd|d|hh|h|ss|s|AM/PM|A/P|\[h+\]|\.0+|[^a-z\[]+", re.IGNORECASE)
_MARK = "\0"


class _Workbook:
    """A workbook that is open for all of its sheets, so that its texts and formats are read once."""

    def __init__(self, source: FileSource) -> None:
        from openpyxl import load_workbook  # A slow import, which other formats do not need.

        self.archive = files.open_archive(source.path)
        # Refuse parts that are read at once and larger than in any real workbook.
        archive = self.archive.zip
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if sizes.get(_TEXTS, 0) > MAX_TEXTS:
            message = _("%(file)s: its texts are more than %(most)s MB; save its sheets as CSV in UTF-8")
            raise BadInput(message % {"file": source, "most": MAX_TEXTS >> 20})
        parts = [name for name in sizes if _PARTS.match(name)]
        tags = _MAX_TAGS + 1 if sum(sizes[name] for name in parts) > _MAX_PARTS else 0
        for name in parts if not tags else ():
            tags += archive.read(name).count(b"<")
        if tags > _MAX_TAGS:
            message = _(
                "%(file)s: its formats and settings are larger than its texts need; save its sheets as CSV in UTF-8"
            )
            raise BadInput(message % {"file": source})
        sheets = len(_SHEET.findall(archive.read("xl/workbook.xml")))
        if sheets > MAX_SHEETS:
            message = _("%(file)s: %(n)s sheets in it; a workbook has at most %(most)s here")
            raise BadInput(message % {"file": source, "n": f"{sheets:,}", "most": MAX_SHEETS})
        # An open file, because openpyxl checks the endings of file names.
        file = source.path.open("rb")
        finalize(self, file.close)
        # Links to other workbooks are not needed.
        self.book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        finalize(self, self.book.close)


_workbooks: WeakValueDictionary[tuple[str, int, int, int], _Workbook] = WeakValueDictionary()


def list_sheets(source: FileSource) -> list[str]:
    """Return the names of a workbook's sheets with filled cells. Raises BadInput for none, and for a bad workbook."""
    with _open_workbook(source) as book:
        sheets = [sheet.title for sheet in book.worksheets if next(_filled_rows(source, sheet), None)]
    if not sheets:
        raise BadInput(_("%(file)s: the workbook has no filled cell") % {"file": source})
    return sheets


def read_sheet(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, cells) of each filled row, from the header; without a member of the first filled sheet."""
    with _open_workbook(source) as book:
        names = [source.member] if source.member else list_sheets(source)
        if names[0] not in book.sheetnames:
            raise BadInput(_("%(file)s: the workbook has no such sheet") % {"file": source})
        width = cell_count = filled_count = 0
        for number, cells in _filled_rows(source, book[names[0]]):
            width = width or len(cells)
            row = [""] * max(width, max(cells))
            for column, cell in cells.items():
                row[column - 1] = cell
            filled_count += len(cells)
            cell_count += len(row)
            if files.is_nearly_empty(filled_count, cell_count):
                raise source.bad(number, _("nearly all cells up to here are empty; delete the empty columns"))
            width = width or len(row)
            yield number, row


def _filled_rows(source: FileSource, sheet: Any) -> Iterator[tuple[int, dict[int, str]]]:
    """Yield (number, filled cells by column number) of each row with a filled cell."""
    from openpyxl.cell.read_only import ReadOnlyCell

    empty_count = 0
    for number, row in _stored_rows(sheet):
        cells = {}
        for cell in row:
            value = cell["value"]
            # The format is looked up only for numbers and dates.
            if value is not None and not isinstance(value, str | bool):
                formatted_cell = ReadOnlyCell(sheet, **cell)
                value = formatted_cell.value
                if isinstance(value, int | float):
                    value = show_number(value, formatted_cell.number_format or "General")
                else:
                    value = show_date(value, formatted_cell.number_format or "")
            if text := as_cell(value):
                cells[cell["column"]] = text
        # Numbers as in the file: filling the rows between two of them takes as long as the file says.
        if not 0 < number <= MAX_ROWS or max((cell["column"] for cell in row), default=0) > MAX_COLUMNS:
            message = _(
                "%(file)s: a cell outside of the %(rows)s rows and %(columns)s columns of a sheet; save it again"
            )
            raise BadInput(message % {"file": source, "rows": f"{MAX_ROWS:,}", "columns": f"{MAX_COLUMNS:,}"})
        empty_count = 0 if cells else empty_count + 1
        if empty_count > MAX_EMPTY_ROWS:
            message = _("More than %(most)s empty rows end here; delete them")
            raise source.bad(number, message % {"most": f"{MAX_EMPTY_ROWS:,}"})
        if cells:
            yield number, cells


def _stored_rows(sheet: Any) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (number, cells) of the rows in the file; openpyxl's own iterator would also yield all rows between."""
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
        # Damage may raise any error of zipfile, the XML parser or openpyxl.
        raise _refusal(source) from error
    source.shared = workbook
    try:
        yield workbook.book
    except (zipfile.BadZipFile, SyntaxError, KeyError, ValueError, EOFError) as error:
        raise _refusal(source) from error


def _refusal(source: FileSource) -> BadInput:
    return BadInput(_("%(file)s: the workbook is damaged or locked; save it again") % {"file": source})


# Numbers and dates as cells show them: 00007, 87%, 2026-11-28.


def show_number(value: int | float, form: str) -> str:
    """Return a number as its format shows it, without rounding and without marks between thousands.

    A number is an id or a measure. The leading zeros of an id, and the text among them, are part of
    it. A measure must not lose a digit, and text around it would make it unreadable as a number.
    """
    sections = form.split(";")
    literals: list[str] = []

    def keep(match: "re.Match[str]") -> str:
        literals.append(match[1] if match[1] is not None else match[2])
        return _MARK

    text = _NO_TEXT.sub("", _QUOTED.sub(keep, sections[0]))
    if form == "General" or re.search(r"[a-zA-Z/@]|[eE][+-]", text) or not re.search(r"[0#]", text):
        return _plain(value)
    if isinstance(value, int) or value.is_integer():
        zeros = re.sub(rf"[{_MARK} -]", "", text)
        if value >= 0 and len(zeros) > 1 and set(zeros) == {"0"}:
            # A number whose format is zeros with text among them: 000-0000 or "Q"000.
            width = len(zeros)
            digits = str(int(value)).zfill(width)
            # Digits beyond the zeros of the format are placed at the first zero.
            literal_texts, remaining_digits = iter(literals), iter(digits[len(digits) - width :])
            parts, leading_digits = [], digits[: len(digits) - width]
            for letter in text:
                if letter == "0":
                    parts.append(leading_digits + next(remaining_digits))
                    leading_digits = ""
                else:
                    parts.append(next(literal_texts, "") if letter == _MARK else letter)
            return "".join(parts).strip()
    percent = "%" in text
    number_match = _NUMBER.search(text)
    # Padded with zeros at both ends as in the format.
    integer_format, _, decimal_format = (number_match[0] if number_match else "0").replace(",", "").partition(".")
    decimals, shown = decimal_format.count("0"), _plain(abs(value) * 100 if percent else abs(value))
    integer_digits, _, decimal_digits = shown.partition(".")
    if integer_digits.isdigit() and (not decimal_digits or decimal_digits.isdigit()):
        shown = integer_digits.zfill(integer_format.count("0"))
        if decimal_digits or decimals:
            shown += f".{decimal_digits.ljust(decimals, '0')}"
    return f"{'-' if value < 0 else ''}{shown}{'%' if percent else ''}"


def _plain(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    # Workbooks store whole numbers as 7.0, and 0.29 * 100 is 28.999999999999996.
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


def show_date(value: Any, form: str) -> str:
    """Return a date or time as its format shows it; as 2026-11-28T09:30:00 for an unknown format."""
    if not isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return str(value)
    section = _QUOTED.sub(lambda match: match[1] if match[1] is not None else match[2], form.split(";")[0])
    section = re.sub(r"\[\$[^\]]*\]", "", section)
    parts = _DATE_PART.findall(section)
    if "".join(parts) != section or not re.search(r"[ymdhs]", section, re.IGNORECASE):
        return value.isoformat()
    is_half_day = any(part.upper() in ("AM/PM", "A/P") for part in parts)
    try:
        return "".join(_date_part(value, parts, index, is_half_day) for index in range(len(parts)))
    except (AttributeError, ValueError):
        return value.isoformat()


def _date_part(value: Any, parts: list[str], index: int, is_half_day: bool) -> str:
    part = parts[index].lower()
    letters = [other_part.lower().strip("[]")[:1] for other_part in parts]
    # "m" is a minute after an hour or before a second.
    is_minute = [letter for letter in letters[:index] if letter in "ymdhs"][-1:] == ["h"]
    is_minute = is_minute or [letter for letter in letters[index + 1 :] if letter in "ymdhs"][:1] == ["s"]
    hour = (value.hour - 1) % 12 + 1 if is_half_day and part.startswith("h") else getattr(value, "hour", 0)
    if part in ("m", "mm") and is_minute:
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
    return parts[index]
