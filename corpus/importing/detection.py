"""What given files hold, by their content: each with its kind, its columns and its first rows. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.importing import archives, records, tables
from corpus.importing.files import FileSource
from corpus.importing.trec import read_elements

# What a file can be; "all": each row of a table holds a query, a document and so a pair.
KINDS = ("documents", "queries", "pairs", "qrels", "runs", "all")
SHOWN_ROWS, SHOWN_CHARACTERS = 5, 200
_XML = re.compile(rb"<(doc|top)[\s>]", re.IGNORECASE)
_COLUMNS = {
    "qrels": ("query", "iteration", "document", "grade"),
    "runs": ("query", "Q0", "document", "rank", "score", "tag"),
    "pairs": ("query_id", "doc_id", "teacher_score", "gold"),
}


@dataclass(slots=True)
class DetectedFile:
    """What a file holds. `fields`: what each column is, for a table alone, whose kind they tell."""

    kind: str  # "": it is left out.
    choices: list[str] = field(default_factory=list)  # The kinds that it could be.
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    problem: str = ""  # Why it is left out.


def list_sources(path: Path, name: str = "") -> list[FileSource]:
    """Return the files that a path stands for: itself, or those in a zip archive."""
    source = FileSource(path, name=name)
    if not archives.is_archive(path):
        return [source]
    return [FileSource(path, name=source.name, member=member) for member in archives.list_members(path, source.name)]


def detect(source: FileSource) -> DetectedFile:
    """Return what a file holds; one that nothing can be made of has a problem and no kind."""
    try:
        return _detect_json_or_xml(source) or _detect_trec(source) or _detect_table(source)
    except BadInput as error:
        return DetectedFile("", problem=str(error))


def keep_one_each(found: Sequence[tuple[FileSource, DetectedFile]]) -> None:
    """Leave out all but the first file of a kind of which an import takes one."""
    reasons = {
        "documents": _("another file of documents is taken"),
        "queries": _("another file of queries is taken"),
        "pairs": _("another file of pairs is taken"),
    }
    for kind, reason in reasons.items():
        for one in [one for _source, one in found if one.kind == kind][1:]:
            one.kind, one.problem = "", reason


def _detect_json_or_xml(source: FileSource) -> DetectedFile | None:
    number, line = source.first()
    if not number:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    if line[:1] == b"<":
        return _detect_xml(source)
    if line[:1] not in b"{[":
        return None
    row = records.json_object(source, number, line, is_first=True)
    if {"query_id", "doc_id"} <= row.keys():
        return DetectedFile("pairs", ["pairs"], list(_COLUMNS["pairs"]), _first(_json_rows(source, _COLUMNS["pairs"])))
    if not {"_id", "text"} <= row.keys():
        known = source.foreign() or _("its fields are %(names)s") % {"names": ", ".join(list(row)[:10])}
        said = _('neither "_id" and "text" nor "query_id" and "doc_id": %(known)s')
        raise source.bad(number, said % {"known": known})
    asked = {"answers", "instruction"} & row.keys() or (tables.about_queries(source.name) and not row.get("title"))
    columns = ("_id", "text", "answers", "instruction") if asked else ("_id", "title", "text")
    shown = [name for name in columns if name in row]
    kind = "queries" if asked else "documents"
    return DetectedFile(kind, ["documents", "queries"], shown, _first(_json_rows(source, shown)))


def _detect_xml(source: FileSource) -> DetectedFile:
    tag = _XML.search(source.head())
    if tag is None:
        raise BadInput(_("%(file)s: XML without <doc> or <top>; see docs/importing.md") % {"file": source})
    name = tag[1].decode().lower()
    kind, columns = (
        ("documents", ("docno", "title", "text")) if name == "doc" else ("queries", ("num", "title", "desc"))
    )
    rows = ([fields.get(one, "") for one in columns] for _line, fields in read_elements(source, name))
    return DetectedFile(kind, [kind], list(columns), _first(rows))


def _detect_trec(source: FileSource) -> DetectedFile | None:
    """Return what a file of qrels or of a run holds; None where its first line is neither."""
    number, line = source.first()
    text = source.decode(number, line)
    columns = text.split("\t") if "\t" in text else text.split()
    kind = ""
    if len(columns) == 6 and columns[3].isdecimal() and re.fullmatch(r"[-+.\deE]+", columns[4]):
        kind = "runs"
    elif len(columns) == 4 and re.fullmatch(r"[-+]?\d+", columns[3].strip()) and " " not in columns[2]:
        kind = "qrels"
    elif len(columns) == 3 and "," not in text and re.search(r"score|grade|label|rel", columns[2], re.IGNORECASE):
        rows = (text.split() for number, text in islice(source.texts(), 1, None))
        return DetectedFile("qrels", ["qrels"], columns, _first(rows))
    if not kind:
        return None
    return DetectedFile(kind, [kind], list(_COLUMNS[kind]), _first(text.split() for _number, text in source.texts()))


def _detect_table(source: FileSource) -> DetectedFile:
    table = tables.read_table(source)
    if table is None:
        raise source.bad(source.first()[0], _("not JSON, XML, a table, qrels or a run; see docs/importing.md"))
    problem = "" if table.kind else _("say what its columns are")
    rows = _first(row for _line, row in tables.read_ragged_rows(source, table))
    return DetectedFile(table.kind, [], list(table.header), rows, table.fields, problem)


def _json_rows(source: FileSource, columns: Iterable[str]) -> Iterator[list[str]]:
    for _number, row in records.json_lines(source):
        yield ["" if (value := row.get(name)) is None else str(value) for name in columns]


def _first(rows: Iterable[list[str]]) -> list[list[str]]:
    """Return the first rows as they are shown; fewer where one cannot be read, of which the importer will tell."""
    found: list[list[str]] = []
    try:
        for row in islice(rows, SHOWN_ROWS):
            found.append([cell[:SHOWN_CHARACTERS] for cell in row])
    except BadInput:
        pass
    return found
