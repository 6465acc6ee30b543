"""What files hold, as bytes: JSON lines, Parquet, workbooks, zip archives."""

import io
import json
import zipfile
from typing import Any

import openpyxl
import pyarrow
from pyarrow import parquet


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parquet_of(*rows: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file, **options)
    return file.getvalue()


def workbook_of(*rows: list[Any], formats: dict[str, str] | None = None, **sheets: list[list[Any]]) -> bytes:
    """A workbook of one sheet with these rows, whose cells may have number formats, or of sheets by their names."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, content in (sheets or {"Sheet": rows}).items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def zip_of(members: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()
