"""What a file is that none of our importers reads, by its first bytes or by the fields of its JSON. Pure."""

import re
from typing import NamedTuple


class KnownFormat(NamedTuple):
    """A kind of file, and what to do with it."""

    what: str
    do: str

    def __str__(self) -> str:
        return f"this is {self.what}, which is not read here: {self.do}"


_UNPACK = "unpack it and name the file that it holds"
_AS_LINES = "write its rows as JSON lines or columns, as docs/importing.md shows them"
_AS_TEXT = "save it as text in UTF-8"
_AS_CSV = "save the sheet as CSV in UTF-8"

# First bytes. They count only in a file that is not text: a text may begin with the letters ORC.
_BINARY: tuple[tuple[bytes | tuple[bytes, ...], KnownFormat], ...] = (
    (b"PAR1", KnownFormat("a Parquet file", _AS_LINES)),
    (b"ARROW1", KnownFormat("an Arrow or Feather file", _AS_LINES)),
    (b"Obj\x01", KnownFormat("an Avro file", _AS_LINES)),
    (b"ORC", KnownFormat("an ORC file", _AS_LINES)),
    (b"SQLite format 3\0", KnownFormat("an SQLite database", _AS_LINES)),
    (b"\x89HDF\r\n\x1a\n", KnownFormat("an HDF5 file", _AS_LINES)),
    (b"\x93NUMPY", KnownFormat("a NumPy file", _AS_TEXT)),
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), KnownFormat("a Python pickle", _AS_LINES)),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", KnownFormat("an old Excel or Word file", "save it as CSV or text in UTF-8")),
    (b"BZh", KnownFormat("a bzip2 archive", _UNPACK)),
    (b"\xfd7zXZ\0", KnownFormat("an xz archive", _UNPACK)),
    (b"\x28\xb5\x2f\xfd", KnownFormat("a Zstandard archive", _UNPACK)),
    (b"\x04\x22\x4d\x18", KnownFormat("an LZ4 archive", _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", KnownFormat("a 7-Zip archive", _UNPACK)),
    (b"Rar!\x1a\x07", KnownFormat("a RAR archive", _UNPACK)),
    (b"\x89PNG\r\n\x1a\n", KnownFormat("a picture (PNG)", "name a file of text")),
    (b"\xff\xd8\xff", KnownFormat("a picture (JPEG)", "name a file of text")),
    (b"GIF8", KnownFormat("a picture (GIF)", "name a file of text")),
    # Before UTF-16, whose mark is the beginning of this one.
    ((b"\xff\xfe\0\0", b"\0\0\xfe\xff"), KnownFormat("text in UTF-32", _AS_TEXT)),
    ((b"\xff\xfe", b"\xfe\xff"), KnownFormat("text in UTF-16", _AS_TEXT)),
)

# Names inside a zip archive that say what it really is.
_ZIPPED = (
    (b"xl/", KnownFormat("an Excel workbook", _AS_CSV)),
    (b"opendocument.spreadsheet", KnownFormat("an OpenDocument spreadsheet", _AS_CSV)),
    (b"word/", KnownFormat("a Word document", _AS_TEXT)),
    (b"opendocument.text", KnownFormat("an OpenDocument text", _AS_TEXT)),
)

_PAGE = KnownFormat("a web page (HTML)", "download the file itself, not the page that shows it")
_TEXT = (
    (re.compile(rb"\s*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE), _PAGE),
    (re.compile(rb"version https://git-lfs\.github\.com/spec/"),
     KnownFormat("a pointer of Git LFS", "fetch the file itself with `git lfs pull`")),
    (re.compile(rb"%PDF-"), KnownFormat("a PDF", "take its text out and " + _AS_TEXT.removeprefix("save it "))),
)  # fmt: skip

# Tools by names of fields that all stand in their JSON; `a|b`: one of them is enough.
_TOOLS = (
    ("a Label Studio export", (b"annotations", b"data", b"project|lead_time|from_name|completed_by")),
    ("a Label Studio export", (b"completions", b"data")),
    ("a Label Studio export", (b"annotation_id", b"annotator")),
    ("an Argilla export", (b"responses", b"suggestions|fields")),
    ("an Argilla export", (b"prediction_agent|annotation_agent",)),
    ("a Prodigy export", (b"_input_hash", b"_task_hash")),
    ("a Labelbox export", (b"data_row", b"projects|Label")),
    ("an INCEpTION export", (b"%FEATURE_STRUCTURES",)),
    ("a Jupyter notebook", (b"cells", b"nbformat")),
    ("a page of Hugging Face's dataset viewer", (b"row_idx", b"truncated_cells")),
    ("an Elasticsearch answer", (b"_index", b"_source")),
    ("JSON as doccano writes it", (b"id", b"text|data", b"label|labels|cats|entities|Comments")),
)

_RANKINGS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?[\d.]')
HEAD = 1 << 18  # Bytes at the beginning of a file that are looked at.


def recognise_format(head: bytes, *, pages: bool = False) -> KnownFormat | None:
    """Return what a file with these first bytes is, if it is certainly none of ours. `pages`: web pages are wanted."""
    if found := next((known for pattern, known in _TEXT if pattern.match(head)), None):
        return None if pages and found is _PAGE else found
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        known = next((known for name, known in _ZIPPED if name in head), None)
        return known or KnownFormat("a zip archive", _UNPACK)
    is_utf8 = _is_utf8(head)
    if is_utf8 and b"\0" not in head:
        return None
    if found := next((known for magic, known in _BINARY if head.startswith(magic)), None):
        return found
    if head[257:262] == b"ustar":
        return KnownFormat("a tar archive", _UNPACK)
    if _is_wide(head):
        return KnownFormat("text in UTF-16", _AS_TEXT)
    return KnownFormat("binary data", "name a file of text") if b"\0" in head and not is_utf8 else None


def _is_utf8(head: bytes) -> bool:
    """Whether the bytes are UTF-8, whose last character may be cut."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True


def _is_wide(head: bytes) -> bool:
    """Whether this is UTF-16 without a mark: every second byte of Latin text is NUL, and none of the others."""
    sample = head[:400]
    even, odd = sample[::2], sample[1::2]
    few, many = sorted((even.count(0), odd.count(0)))
    return len(sample) > 3 and not few and many > 0.4 * len(even)


def json_of(head: bytes) -> KnownFormat | None:
    """Return whose JSON this is, or its form, when it is not JSON lines of ours."""
    fields = {name for name in re.findall(rb'"([\w%-]{1,40})"\s*:', head)}
    for tool, wanted in _TOOLS:
        if all(fields & set(names.split(b"|")) for names in wanted):
            return KnownFormat(tool, _AS_LINES)
    if _RANKINGS.match(head):
        return KnownFormat(
            "JSON that maps queries to documents (as ranx and pytrec_eval write it)",
            "write a line for each pair: qrels `query 0 document grade`, runs `query Q0 document rank score tag`",
        )
    if head.lstrip().startswith(b"["):
        return KnownFormat("one JSON list", _AS_LINES)
    if re.match(rb"\s*\{\s*[\r\n]", head):
        return KnownFormat("JSON over several lines", _AS_LINES)
    return None


def folder_of(names: list[str]) -> KnownFormat:
    """Describe a folder, with what could be meant in it."""
    likely = [name for name in names if name.endswith((".jsonl", ".tsv", ".txt", ".csv", ".gz", ".run", ".toml"))]
    likely += [name for name in names if name == "qrels"]
    held = f", which holds {', '.join(sorted(likely)[:5])}" if likely else ""
    return KnownFormat(f"a folder{held}", "name a file in it")
