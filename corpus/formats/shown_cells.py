"""Numbers and dates of workbooks as their cells show them: 00007, 87%, 2026-11-28. Pure."""

import datetime
import re
from typing import Any

_QUOTED = re.compile(r'"([^"]*)"|\\(.)')
_NO_TEXT = re.compile(r"\[[^\]]*\]|_.|\*.")  # Colours and conditions, and blanks as wide as a letter.
_NUMBER = re.compile(r"[#0,?]*0[#0,?]*(?:\.[0#?]*)?|#[#,?]*")
_DATE_PART = re.compile(r"yyyy|yy|mmmm|mmm|mm|m|dddd|ddd|dd|d|hh|h|ss|s|AM/PM|A/P|\[h+\]|\.0+|[^a-z\[]+", re.IGNORECASE)
_MARK = "\0"


def show_number(value: int | float, form: str) -> str:
    """Return a number as its format shows it, without rounding and without marks between thousands.

    A number is an id or a measure here. Of an id the zeros before it, and words and strokes beside them, are part of
    it; of a measure no digit may be lost, and what stands around it would make it none.
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
