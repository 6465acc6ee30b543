"""Cells of CSV files that spreadsheets do not run as formulas. Pure."""

import re
from collections.abc import Sequence
from typing import Any

ALWAYS_FORMULA = ("=", "@", "\t", "\r")
SIGNED_WORD = re.compile(r"[+-][\w.:-]*\Z")


def csv_cell(value: object) -> str:
    """Return a CSV cell, with an apostrophe before text that a spreadsheet would run as a formula.

    Formulas begin with = + - @ tab or return. A sign before only letters, digits and `_ . : -` is harmless
    (no call, no reference), so ids such as -9aX and numbers stay exact. Text that already has apostrophes
    before a formula gets one more, so that removing one always restores it (docs/export.md).
    """
    text = str(value)
    if _is_formula(text):
        text = f"'{text}"
    if any(mark in text for mark in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text


def parse_csv_cell(text: str) -> str:
    """Return the original text of a cell of `csv_cell`, as read by a CSV reader."""
    return text[1:] if text[:1] == "'" and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    # Text with apostrophes before a formula is treated like the formula, since `parse_csv_cell` removes one.
    bare = text.lstrip("'")
    return bare.startswith(ALWAYS_FORMULA) or (bare.startswith(("+", "-")) and not SIGNED_WORD.match(bare))


def csv_line(row: Sequence[Any]) -> str:
    """Return a row's cells as one line of CSV."""
    return ",".join(map(csv_cell, row)) + "\n"
