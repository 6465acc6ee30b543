"""Cells of CSV files that a spreadsheet opens without running anything. Pure."""

import re
from collections.abc import Sequence
from typing import Any

ALWAYS_FORMULA = ("=", "@", "\t", "\r")
SIGNED_WORD = re.compile(r"[+-][\w.:-]*\Z")


def csv_cell(value: object) -> str:
    """Return a CSV cell; an apostrophe stands before text that a spreadsheet would run as a formula.

    Formulas begin with = + - @ tab or return. A sign before letters, digits, `_ . : -` alone cannot
    act (no call, no reference): ids such as -9aX and numbers stay exact. A cell that begins with
    apostrophes and then a formula gets one more apostrophe, so that taking one away always gives
    the id (docs/export.md).
    """
    text = str(value)
    if _is_formula(text):
        text = f"'{text}"
    if any(mark in text for mark in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text


def parse_csv_cell(text: str) -> str:
    """Return what `csv_cell` was given, from the cell that a reader of CSV found."""
    return text[1:] if text[:1] == "'" and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    # Text that begins with apostrophes before a formula gets one more of them, since `parse_csv_cell` takes one away.
    bare = text.lstrip("'")
    return bare.startswith(ALWAYS_FORMULA) or (bare.startswith(("+", "-")) and not SIGNED_WORD.match(bare))


def csv_line(row: Sequence[Any]) -> str:
    """Return a row's cells as one line of CSV."""
    return ",".join(map(csv_cell, row)) + "\n"
