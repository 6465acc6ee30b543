"""Recognition of files that no importer reads, by their first bytes or fields. Pure."""

import re
from typing import NamedTuple

from django.utils.translation import gettext as _

from charts.translation import gettext_noop


class KnownFormat(NamedTuple):
    """A format that cannot be read, and what to do about it."""

    name: str
    remedy: str

    def __str__(self) -> str:
        message = _("this is %(what)s, which cannot be read here: %(do)s")
        return message % {"what": _(self.name), "do": _(self.remedy)}


_UNPACK = gettext_noop("unpack it and name the file in it")
_AS_LINES = gettext_noop("write its rows as JSON lines or columns, as docs/import.md shows them")
_AS_TEXT = gettext_noop("save it as text in UTF-8")
_NAME_TEXT = gettext_noop("choose a text file")
_AS_CSV = gettext_noop("save the sheet as CSV in UTF-8")

# First bytes of files that are not text: a text may begin with the letters ORC.
_BINARY: tuple[tuple[bytes | tuple[bytes, ...], KnownFormat], ...] = (
    (b"PAR1", KnownFormat(gettext_noop("a Parquet file"), _AS_LINES)),
    (b"ARROW1", KnownFormat(gettext_noop("an Arrow or Feather file"), _AS_LINES)),
    (b"Obj\x01", KnownFormat(gettext_noop("an Avro file"), _AS_LINES)),
    (b"ORC", KnownFormat(gettext_noop("an ORC file"), _AS_LINES)),
    (b"SQLite format 3\0", KnownFormat(gettext_noop("an SQLite database"), _AS_LINES)),
    (b"\x89HDF\r\n\x1a\n", KnownFormat(gettext_noop("an HDF5 file"), _AS_LINES)),
    (b"\x93NUMPY", KnownFormat(gettext_noop("a NumPy file"), _AS_TEXT)),
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), KnownFormat(gettext_noop("a Python pickle"), _AS_LINES)),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        KnownFormat(gettext_noop("an old Excel or Word file"), gettext_noop("save it as CSV or text in UTF-8")),
    ),
    (b"BZh", KnownFormat(gettext_noop("a bzip2 archive"), _UNPACK)),
    (b"\xfd7zXZ\0", KnownFormat(gettext_noop("an xz archive"), _UNPACK)),
    (b"\x28\xb5\x2f\xfd", KnownFormat(gettext_noop("a Zstandard archive"), _UNPACK)),
    (b"\x04\x22\x4d\x18", KnownFormat(gettext_noop("an LZ4 archive"), _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", KnownFormat(gettext_noop("a 7-Zip archive"), _UNPACK)),
    (b"Rar!\x1a\x07", KnownFormat(gettext_noop("a RAR archive"), _UNPACK)),
    (b"\x89PNG\r\n\x1a\n", KnownFormat(gettext_noop("a PNG image"), _NAME_TEXT)),
    (b"\xff\xd8\xff", KnownFormat(gettext_noop("a JPEG image"), _NAME_TEXT)),
    (b"GIF8", KnownFormat(gettext_noop("a GIF image"), _NAME_TEXT)),
    # Before UTF-16, whose byte order mark is the beginning of this one.
    ((b"\xff\xfe\0\0", b"\0\0\xfe\xff"), KnownFormat(gettext_noop("text in UTF-32"), _AS_TEXT)),
    ((b"\xff\xfe", b"\xfe\xff"), KnownFormat(gettext_noop("text in UTF-16"), _AS_TEXT)),
)

# Names inside a zip archive that identify its format.
_ZIPPED = (
    (b"xl/", KnownFormat(gettext_noop("an Excel workbook"), _AS_CSV)),
    (b"opendocument.spreadsheet", KnownFormat(gettext_noop("an OpenDocument spreadsheet"), _AS_CSV)),
    (b"word/", KnownFormat(gettext_noop("a Word document"), _AS_TEXT)),
    (b"opendocument.text", KnownFormat(gettext_noop("an OpenDocument text"), _AS_TEXT)),
)

_PAGE = KnownFormat(
    gettext_noop("a web page (HTML)"), gettext_noop("download the file itself, not the page that shows it")
)
_TEXT = (
    (re.compile(rb"\s*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE), _PAGE),
    (re.compile(rb"version https://git-lfs\.github\.com/spec/"),
     KnownFormat(gettext_noop("a pointer of Git LFS"), gettext_noop("fetch the file itself with git lfs pull"))),
    (re.compile(rb"%PDF-"), KnownFormat(gettext_noop("a PDF"), gettext_noop("take its text out and save it in UTF-8"))),
)  # fmt: skip

# Tools by the fields that all occur in their JSON; `a|b`: either of them.
_TOOLS = (
    (gettext_noop("a Label Studio export"), (b"annotations", b"data", b"project|lead_time|from_name|completed_by")),
    (gettext_noop("a Label Studio export"), (b"completions", b"data")),
    (gettext_noop("a Label Studio export"), (b"annotation_id", b"annotator")),
    (gettext_noop("an Argilla export"), (b"responses", b"suggestions|fields")),
    (gettext_noop("an Argilla export"), (b"prediction_agent|annotation_agent",)),
    (gettext_noop("a Prodigy export"), (b"_input_hash", b"_task_hash")),
    (gettext_noop("a Labelbox export"), (b"data_row", b"projects|Label")),
    (gettext_noop("an INCEpTION export"), (b"%FEATURE_STRUCTURES",)),
    (gettext_noop("a Jupyter notebook"), (b"cells", b"nbformat")),
    (gettext_noop("a page of Hugging Face's dataset viewer"), (b"row_idx", b"truncated_cells")),
    (gettext_noop("an Elasticsearch answer"), (b"_index", b"_source")),
    (gettext_noop("an answer of Solr"), (b"numFound", b"docs")),
    (gettext_noop("a data set of LlamaIndex"), (b"queries", b"corpus", b"relevant_docs")),
    (gettext_noop("JSON as doccano writes it"), (b"id", b"text|data", b"label|labels|cats|entities|Comments")),
)

_RANKINGS = re.compile(rb'\s*\{\s*"(?!response)[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?[\d.]')
HEAD = 1 << 18  # Bytes at the beginning of a file that are inspected.


def recognise_format(head: bytes, *, pages: bool = False) -> KnownFormat | None:
    """Return the format of a file with these first bytes if it cannot be read. `pages`: web pages can be."""
    if known_format := next((candidate for pattern, candidate in _TEXT if pattern.match(head)), None):
        return None if pages and known_format is _PAGE else known_format
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        zipped_format = next((candidate for name, candidate in _ZIPPED if name in head), None)
        return zipped_format or KnownFormat(gettext_noop("a zip archive"), _UNPACK)
    if is_text(head):
        return None
    if known_format := next((candidate for magic, candidate in _BINARY if head.startswith(magic)), None):
        return known_format
    if head[257:262] == b"ustar":
        return KnownFormat(gettext_noop("a tar archive"), _UNPACK)
    # UTF-16 without a byte order mark: every second byte of Latin text is NUL, and no other byte is.
    sample = head[:400]
    fewer, more = sorted((sample[::2].count(0), sample[1::2].count(0)))
    if len(sample) > 3 and not fewer and more > 0.4 * len(sample[::2]):
        return KnownFormat(gettext_noop("text in UTF-16"), _AS_TEXT)
    return KnownFormat(gettext_noop("binary data"), _NAME_TEXT) if b"\0" in head and not _is_utf8(head) else None


def is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8 without NUL."""
    return b"\0" not in head and _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    """Return whether the bytes are UTF-8; the last character may be incomplete."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True


def json_of(head: bytes) -> KnownFormat | None:
    """Return the tool or the form of JSON that is not JSON lines of ours."""
    if known_format := tool_of(head):
        return known_format
    if head.lstrip().startswith(b"["):
        return KnownFormat(gettext_noop("one JSON list"), _AS_LINES)
    if re.match(rb"\s*\{\s*[\r\n]", head):
        return KnownFormat(gettext_noop("JSON over several lines"), _AS_LINES)
    return None


def tool_of(head: bytes) -> KnownFormat | None:
    """Return the tool that wrote this JSON, in any form."""
    fields = {name for name in re.findall(rb'"([\w%-]{1,40})"\s*:', head)}
    for tool, field_choices in _TOOLS:
        if all(fields & set(names.split(b"|")) for names in field_choices):
            return KnownFormat(tool, _AS_LINES)
    if _RANKINGS.match(head):
        return KnownFormat(
            gettext_noop("JSON that maps queries to documents (as ranx and pytrec_eval write it)"),
            gettext_noop(
                'write a line for each pair: qrels "query 0 document grade", runs "query Q0 document rank score tag"'
            ),
        )
    return None
