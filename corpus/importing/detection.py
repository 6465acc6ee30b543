"""Detection of the contents of files: their kinds, columns and first rows. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

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

# The kinds of file, with their contents. In the last three each row of a table is a pair, with the
# text of its query, of its document, or of both.
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
SEVERAL = ("qrels", "judgments", "runs")  # Contents of which an import may have any number of files.
LOOKED_AT = 100  # Texts that are inspected to tell queries from documents.
TEXTS = ["documents", "queries"]  # Kinds that only the texts themselves tell apart.
SHORT = 300  # Characters of a text that may be a query.
SHORTER = 3  # Texts of documents are so many times as long as queries, where both come without titles.
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
    """The detected content of a file; `fields` are those of a table's columns."""

    kind: str  # "" for a file that is left out.
    choices: list[str] = field(default_factory=list)  # The kinds that it could be.
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    problem: str = ""  # Why it is left out.
    is_open: bool = False  # Whether a person has to solve the problem, instead of leaving the file out.
    unused: dict[str, str] = field(default_factory=dict)  # The columns of a table that are not read, with reasons.
    text_length: int = 0  # Median characters of the texts, where only these tell documents from queries; else 0.

    @property
    def is_uncertain(self) -> bool:
        """Whether the texts, short and without titles, could be documents as well as queries."""
        return 0 < self.text_length <= SHORT and self.kind in TEXTS


def list_sources(path: Path, name: str = "") -> list[FileSource]:
    """Return the files at a path: the file itself, those in a folder or zip archive, or the sheets of a workbook."""
    if path.is_dir():
        folder = name or str(path)
        return [
            FileSource(file_path, name=f"{folder}/{file_path.relative_to(path)}", is_part=True)
            for file_path in archives.list_folder(path)
        ]
    source = FileSource(path, name=name)
    if files.is_workbook(path):
        members = workbooks.list_sheets(source)
        if len(members) < 2:
            return [source]
    elif archives.is_archive(path):
        members = archives.list_members(source)
    else:
        return [source]
    sources = [FileSource(path, name=source.name, member=member) for member in members]
    for member in sources:
        member.shared = source.shared
    return sources


def detect(source: FileSource) -> DetectedFile:
    """Detect the content of a file; an unusable file has a problem and no kind."""
    try:
        if source.form != TEXT:
            return _detect_table(source)
        if detected_file := _detect_json_or_xml(source):
            return detected_file
        # A table with known column names takes precedence over files without names.
        table = tables.read_table(source)
        if table and table.has_header and table.places:
            return _describe_table(source, table)
        return _detect_trec(source) or _detect_table(source)
    except BadInput as error:
        # A file that cannot be read must not keep the others from being detected.
        return DetectedFile("", problem=str(error))


def compare_files(detections: Sequence[tuple[FileSource, DetectedFile]]) -> None:
    """Correct what each file by itself seemed to contain, by the files beside it.

    1. Short texts without titles beside longer documents are queries, if no other file contains queries.
    2. Files with the same content in different columns are marked; those with the same columns are parts of one.
    """
    if not any("queries" in HOLDS.get(detection.kind, ()) for _source, detection in detections):
        documents = [detection for _source, detection in detections if "documents" in HOLDS.get(detection.kind, ())]
        shorter = [
            detection
            for detection in documents
            if detection.is_uncertain
            and any(
                not other.is_uncertain or other.text_length >= SHORTER * detection.text_length for other in documents
            )
        ]
        for detection in shorter:
            detection.kind = "queries"
    reasons = {
        "documents": _("it contains documents, as %(file)s does, in other columns; leave one of them out"),
        "queries": _("it contains queries, as %(file)s does, in other columns; leave one of them out"),
        "pairs": _("it contains pairs, as %(file)s does, in other columns; leave one of them out"),
    }
    first: dict[str, tuple[FileSource, DetectedFile]] = {}
    for source, detection in detections:
        parts = [part for part in HOLDS.get(detection.kind, ()) if part not in SEVERAL]
        fields = set(detection.fields.values()) & set(FIELDS)
        # Columns without a field may differ.
        compatible = {
            part for part, (_source, other) in first.items()
            if other.kind == detection.kind and set(other.fields.values()) & set(FIELDS) == fields
        }  # fmt: skip
        other = next((part for part in parts if part in first and part not in compatible), "")
        if other:
            detection.kind, detection.problem, detection.is_open = "", reasons[other] % {"file": first[other][0]}, True
        else:
            first |= {part: (source, detection) for part in parts if part not in first}


def _detect_json_or_xml(source: FileSource) -> DetectedFile | None:
    number, line = source.first()
    if not number:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    if line[:1] == b"<":
        record = find_record(source)
        if not record:
            raise BadInput(_("%(file)s: XML without <doc>, <top> or <topic>; see docs/import.md") % {"file": source})
        kind = "documents" if record == "doc" else "queries"
        first = next((fields for _line, fields in read_elements(source, record)), {})
        columns = [name for name in (*_COLUMNS[record], "") if name in first or (name and record != "topic")]
        cells = ([fields.get(name, "") for name in columns] for _line, fields in read_elements(source, record))
        return DetectedFile(kind, [kind], [name or "text" for name in columns], _first(cells))
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
    is_query_file = bool({"answers", "instruction"} & row.keys()) or is_named
    text_length = 0
    if not is_query_file:
        # Queries are mostly questions without a title; the questions of Quora, with titles, are documents.
        rows = [row for _number, row in islice(read_objects(source), LOOKED_AT)]
        texts = [str(row.get("text", "")) for row in rows]
        if not any("title" in row for row in rows):
            text_length = max(1, int(median(map(len, texts))))
            is_query_file = 2 * sum(bool(_QUESTION.search(text)) for text in texts) > len(texts)
    keys = ("_id", "text", "answers", "instruction") if is_query_file else ("_id", "title", "text")
    header = [name for name in keys if name in row]
    kind = "queries" if is_query_file else "documents"
    first_rows = _first(_json_rows(source, header))
    return DetectedFile(kind, list(TEXTS), header, first_rows, text_length=text_length)


def _detect_trec(source: FileSource) -> DetectedFile | None:
    """Detect qrels and runs without column names; return None if the first line is neither."""
    text = next((text for _number, text in source.texts() if not is_comment(text)), "")
    columns = text.split("\t") if "\t" in text else text.split()
    kind = ""
    if len(columns) == 6 and columns[3].strip().isdecimal() and re.fullmatch(r"[-+.\deE]+", columns[4].strip()):
        kind = "runs"
    # A word such as "relevant" may be a header, unless the document's id has a digit.
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
    # A table with a known column looks like data, so a person has to say what is missing.
    is_open = bool(problem) and bool(set(table.fields.values()) & set(FIELDS))
    return DetectedFile(kind, [], list(table.header), rows, table.fields, problem, is_open, unused)


def _json_rows(source: FileSource, columns: Iterable[str]) -> Iterator[list[str]]:
    for _number, row in read_objects(source):
        yield ["" if (value := row.get(name)) is None else str(value) for name in columns]


def _first(rows: Iterable[list[str]]) -> list[list[str]]:
    """Return the first rows, shortened for display, up to one that cannot be read, which the import will report."""
    shown_rows: list[list[str]] = []
    try:
        for row in islice(rows, SHOWN_ROWS):
            shown_rows.append([cell[:SHOWN_CHARACTERS] for cell in row])
    except BadInput:
        pass
    return shown_rows
