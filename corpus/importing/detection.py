"""Detection of the content of files: the kind of each, its columns and its first rows. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import archives, files, json_rows, three_columns, workbooks
from corpus.formats.files import TEXT, FileSource
from corpus.formats.grade_values import is_grade
from corpus.formats.json_objects import read_objects
from corpus.formats.trec import find_record, read_elements
from corpus.importing import tables
from corpus.importing.columns import FIELDS
from corpus.importing.grades import is_comment

# What a file can be, and what it then holds. In the last three each row of a table is a pair, with
# the text of its query, of its document, or of both.
HOLDS = {
    "documents": ("documents",),
    "queries": ("queries",),
    "pairs": ("pairs",),
    "qrels": ("qrels",),
    "judgments": ("judgments",),
    "runs": ("runs",),
    "all": ("documents", "queries", "pairs"),
    "queries-pairs": ("queries", "pairs"),
    "documents-pairs": ("documents", "pairs"),
}
KINDS = tuple(HOLDS)
SEVERAL = ("qrels", "judgments", "runs")  # Of which an import takes any number of files.
LOOKED_AT = 100  # Texts of a file whose name does not say whether they are queries or documents.
_QUESTION = re.compile(
    r"^\W*(?:what|which|who|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|should|has|have)\b.{0,300}$"
    r"|^.{0,300}[?？؟]\W*$",
    re.IGNORECASE | re.DOTALL,
)
SHOWN_ROWS, SHOWN_CHARACTERS = 5, 200
_COLUMNS = {
    "qrels": ("query", "iteration", "document", "grade"),
    "runs": ("query", "Q0", "document", "rank", "score", "tag"),
    "pairs": ("query_id", "doc_id", "teacher_score", "gold"),
    "judgments": ("query_id", "doc_id", "assessor", "kind", "grade", "step"),
    "doc": ("docno", "title", "text"),
    "top": ("num", "title", "desc"),
    "topic": ("num", "query", "question", "description", "narrative"),
}


@dataclass(slots=True)
class DetectedFile:
    """A file's content as detected. `fields`: columns' meanings, of tables."""

    kind: str  # "": it is left out.
    choices: list[str] = field(default_factory=list)  # The kinds that it could be.
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    problem: str = ""  # Why it is left out.
    is_open: bool = False  # A problem that somebody has to decide: it is not left out by itself.
    unused: dict[str, str] = field(default_factory=dict)  # Of a table: why each column is not read, by its header.


def list_sources(path: Path, name: str = "") -> list[FileSource]:
    """Return the files that a path stands for: itself, those in a folder or zip archive, or a workbook's sheets."""
    if path.is_dir():
        shown = name or str(path)
        paths = archives.list_folder(path)
        return [FileSource(one, name=f"{shown}/{one.relative_to(path)}", is_part=True) for one in paths]
    source = FileSource(path, name=name)
    if files.is_workbook(path):
        members = workbooks.list_sheets(source)
        if len(members) < 2:
            return [source]
    elif archives.is_archive(path):
        members = archives.list_members(source)
    else:
        return [source]
    found = [FileSource(path, name=source.name, member=member) for member in members]
    for member in found:
        member.shared = source.shared
    return found


def detect(source: FileSource) -> DetectedFile:
    """Return what a file holds; one that nothing can be made of has a problem and no kind."""
    try:
        if source.form != TEXT:
            return _detect_table(source)
        if found := _detect_json_or_xml(source):
            return found
        # A table whose columns have names that are known goes before what places say.
        table = tables.read_table(source)
        if table and table.has_header and table.places:
            return _describe_table(source, table)
        return _detect_trec(source) or _detect_table(source)
    except BadInput as error:
        # One file that cannot be read must not hide what the others hold.
        return DetectedFile("", problem=str(error))


def find_conflicts(found: Sequence[tuple[FileSource, DetectedFile]]) -> None:
    """Let somebody choose of files that hold the same in other columns; files of the same ones are parts of one."""
    reasons = {
        "documents": _("it holds documents, as %(file)s does, in other columns; leave one of them out"),
        "queries": _("it holds queries, as %(file)s does, in other columns; leave one of them out"),
        "pairs": _("it holds pairs, as %(file)s does, in other columns; leave one of them out"),
    }
    first: dict[str, tuple[FileSource, DetectedFile]] = {}
    for source, one in found:
        held = [part for part in HOLDS.get(one.kind, ()) if part not in SEVERAL]
        fields = set(one.fields.values()) & set(FIELDS)
        # Columns that are no field may differ.
        alike = {
            part for part, (_source, other) in first.items()
            if other.kind == one.kind and set(other.fields.values()) & set(FIELDS) == fields
        }  # fmt: skip
        other = next((part for part in held if part in first and part not in alike), "")
        if other:
            one.kind, one.problem, one.is_open = "", reasons[other] % {"file": first[other][0]}, True
        else:
            first |= {part: (source, one) for part in held if part not in first}


def _detect_json_or_xml(source: FileSource) -> DetectedFile | None:
    number, line = source.first()
    if not number:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    if line[:1] == b"<":
        return _detect_xml(source)
    if line[:1] not in b"{[":
        return None
    row = next((row for _number, row in read_objects(source)), None)
    if row is None:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    if not json_rows.is_ours(row):
        return None
    if {"query_id", "doc_id"} <= row.keys():
        kind = "judgments" if row.keys() >= json_rows.JUDGMENT else "pairs"
        return DetectedFile(kind, [kind], list(_COLUMNS[kind]), _first(_json_rows(source, _COLUMNS[kind])))
    is_named = tables.about_queries(source.name) and not row.get("title")
    asked = bool({"answers", "instruction"} & row.keys()) or is_named
    if not asked:
        # Most of the first texts are questions, and none has a place for a title (as Quora's have).
        rows = [row for _number, row in islice(read_objects(source), LOOKED_AT)]
        questions = sum(bool(_QUESTION.search(str(row.get("text", "")))) for row in rows)
        asked = 2 * questions > len(rows) and not any("title" in row for row in rows)
    columns = ("_id", "text", "answers", "instruction") if asked else ("_id", "title", "text")
    shown = [name for name in columns if name in row]
    kind = "queries" if asked else "documents"
    return DetectedFile(kind, ["documents", "queries"], shown, _first(_json_rows(source, shown)))


def _detect_xml(source: FileSource) -> DetectedFile:
    record = find_record(source)
    if not record:
        raise BadInput(_("%(file)s: XML without <doc>, <top> or <topic>; see docs/import.md") % {"file": source})
    kind = "documents" if record == "doc" else "queries"
    first = next((fields for _line, fields in read_elements(source, record)), {})
    columns = [name for name in (*_COLUMNS[record], "") if name in first or (name and record != "topic")]
    rows = ([fields.get(one, "") for one in columns] for _line, fields in read_elements(source, record))
    return DetectedFile(kind, [kind], [name or "text" for name in columns], _first(rows))


def _detect_trec(source: FileSource) -> DetectedFile | None:
    """Return what a file of qrels or of a run without names of columns holds; None where its first line is neither."""
    text = next((text for _number, text in source.texts() if not is_comment(text)), "")
    columns = text.split("\t") if "\t" in text else text.split()
    kind = ""
    if len(columns) == 6 and columns[3].strip().isdecimal() and re.fullmatch(r"[-+.\deE]+", columns[4].strip()):
        kind = "runs"
    # A word such as "relevant" may be a header: beside it the document's id has a digit.
    elif (
        len(columns) == 4
        and is_grade(columns[3].strip())
        and " " not in columns[2]
        and re.search(r"\d", columns[2] + columns[3])
    ):
        kind = "qrels"
    header, choices = list(_COLUMNS.get(kind, ())), [kind]
    if not kind and len(columns) == 3 and "," not in text:
        kind = three_columns.kind_of(source, columns)
        value = "grade" if kind == three_columns.QRELS else "score" if three_columns.is_decimal(columns[2]) else "rank"
        header, choices = ["query", "document", value], ["qrels", "runs"]
    if kind not in ("qrels", "runs"):
        return None
    rows = (text.split() for _number, text in source.texts() if not is_comment(text))
    return DetectedFile(kind, choices, header, _first(rows))


def _detect_table(source: FileSource) -> DetectedFile:
    table = tables.read_table(source)
    if table is None:
        raise source.bad(source.first()[0], _("not JSON, XML, a table, qrels or a run; see docs/import.md"))
    return _describe_table(source, table)


def _describe_table(source: FileSource, table: tables.Table) -> DetectedFile:
    problem = table.problem
    kind = "" if problem else table.kind
    rows = _first(row for _line, row in tables.read_ragged_rows(source, table))
    unused = tables.unused_columns(table, HOLDS[kind]) if kind else {}
    # A table with a known column is no list of licences: what it lacks is for somebody to say.
    is_open = bool(problem) and bool(set(table.fields.values()) & set(FIELDS))
    return DetectedFile(kind, [], list(table.header), rows, table.fields, problem, is_open, unused)


def _json_rows(source: FileSource, columns: Iterable[str]) -> Iterator[list[str]]:
    for _number, row in read_objects(source):
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
