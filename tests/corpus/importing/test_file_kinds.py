"""Every kind of file that a team may have: what it holds, how much of it is read, and what a damaged one is told."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from config.env import ROOT
from corpus.errors import BadInput
from corpus.formats import files, json_objects, parquet_rows, recognition, workbooks
from corpus.formats.files import FileSource
from corpus.importing import records, tables
from corpus.importing.detection import HOLDS, compare_files, detect, list_sources
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import top_of_run
from corpus.models import Assessor, Collection, Document, Judgment, Label, Pair, Query
from tests.corpus.importing.file_contents import lines, parquet_of, workbook_of, zip_of
from tests.hostile_files import workbook
from tests.imported_files import import_files
from tests.stages import first_slow

Content = str | bytes
DOCUMENTS = [
    {"_id": "d1", "title": "One", "text": "A dict maps keys to values."},
    {"_id": "d2", "title": "", "text": "Bread."},
]
QUERIES = [{"_id": "q1", "text": "What maps keys?"}, {"_id": "q2", "text": "What is baked?"}]


def excel_of(*texts: str) -> bytes:
    """A workbook as Excel itself writes it, whose texts stand in a table of their own: one column of them."""
    cells = "".join(f'<row r="{n + 1}"><c r="A{n + 1}" t="s"><v>{n}</v></c></row>' for n in range(len(texts)))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    table = "".join(f"<si><t>{text}</t></si>" for text in texts)
    return workbook(cells, texts=f'<sst xmlns="{main}">{table}</sst>')


TEXTS = {"query": "What maps keys?", "document": "A dict maps keys to values."}


def judged(number: int, by: Any, kind: str = "choices", value: Any = (), **more: Any) -> dict[str, Any]:
    """An annotation of a task of Label Studio."""
    result = {"from_name": "relevance", "to_name": "document", "type": kind, "value": {kind: value}}
    return {"id": number, "completed_by": by, "result": [result], **more}


ALICE = {"id": 3, "email": "alice@site.example"}
TASK = {
    "id": 7,
    "project": 1,
    "data": {"query_id": "q1", "doc_id": "d1", **TEXTS},
    "annotations": [
        judged(1, ALICE, value=["Relevant"], was_cancelled=False, lead_time=4.2),
        judged(2, 4, value=["Not relevant"], was_cancelled=False),
        judged(3, 5, value=["Relevant"], was_cancelled=True),
    ],
}
RATED = TASK | {"annotations": [judged(1, 4, "rating", 2)]}
RECORD = {
    "id": "r1",
    "fields": TEXTS,
    "metadata": {"query_id": "q1", "doc_id": "d1"},
    "suggestions": {"match": {"value": "no", "agent": "model"}},
    "responses": {"match": [{"value": "yes", "user_id": "a-1"}, {"value": "no", "user_id": "b-2"}]},
    "status": "completed",
}
OLD_RECORD = {
    **RECORD,
    "responses": [
        {"user_id": "a-1", "status": "submitted", "values": {"match": {"value": "yes"}}},
        {"user_id": "b-2", "status": "draft", "values": {"match": {"value": "no"}}},
    ],
}
FLAT_RECORD = {
    "id": "r1", "status": "completed", "_server_id": "x", "query_id": "q1", "doc_id": "d1", **TEXTS,
    "match.responses": ["yes", "no"], "match.responses.users": ["a-1", "b-2"],
    "match.responses.status": ["submitted", "discarded"],
}  # fmt: skip
JUDGMENT = {"query_id": "q1", "doc_id": "d1", "assessor": "alice", "kind": "person", "grade": 2, "step": "final",
            "arm": "shown", "guideline": 1, "ms": 900, "time": "2026-11-20T09:30:00.000000Z"}  # fmt: skip
CASE = "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating\n"
TOPICS = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="COVIDSearch Round 1" batch="1">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of COVID-19</question>
    <narrative>seeking range of information</narrative>
  </topic>
  <topic number="2"><query>weather &amp; virus</query><question>?</question></topic>
</topics>
"""
TOP = (
    "<top>\n<num> Number: 301\n<title> Organized Crime\n<desc> Description:\nIdentify.\n<narr> Narrative:\nX\n</top>\n"
)

# Name of the file, its content, what it is and how many of each it holds; "grades": those of named assessors.
KINDS: list[tuple[str, Content, str, dict[str, int]]] = [
    ("docs.csv", "Doc ID;Body;Year\nd1;A;1\nd2;B;2\n", "documents", {"documents": 2}),
    ("docs.txt", "docno^text\nd1^A\n", "documents", {"documents": 1}),
    ("searches.tsv", "qid\tQuery Text\tmarket\nq1\tWhy?\tde\n", "queries", {"queries": 1}),
    ("corpus.jsonl", lines(*DOCUMENTS), "documents", {"documents": 2}),
    ("corpus.json", json.dumps(DOCUMENTS), "documents", {"documents": 2}),
    ("queries.json", json.dumps(QUERIES, indent=2), "queries", {"queries": 2}),
    ("one.json", json.dumps(DOCUMENTS[0], indent=2), "documents", {"documents": 1}),
    ("pyserini.jsonl", lines({"id": "d1", "contents": "A"}, {"id": 2, "contents": "B"}), "documents", {"documents": 2}),
    ("irds.jsonl", lines({"doc_id": "d1", "title": "T", "text": "A"}), "documents", {"documents": 1}),
    ("irds-r.jsonl", lines({"query_id": "q1", "doc_id": "d1", "relevance": 2, "x": "0"}), "qrels", {"qrels": 1}),
    ("irds-p.jsonl", lines({"query_id": "q1", "doc_id_a": "d1", "doc_id_b": "d2"}), "pairs", {"pairs": 2}),
    ("mteb.parquet", parquet_of({"query-id": "q1", "corpus-id": "d1", "score": 1.0}), "qrels", {"qrels": 1}),
    ("corpus.parquet", parquet_of(*DOCUMENTS), "documents", {"documents": 2}),
    ("corpus.parquet.gz", gzip.compress(parquet_of(*DOCUMENTS)), "documents", {"documents": 2}),
    ("q.parquet", parquet_of({"query_id": 1, "query": "W?", "answers": ["a\nb", "c"]}), "queries", {"queries": 1}),
    ("collection.tsv", '101\tA "quoted\n102\tB text\n', "documents", {"documents": 2}),
    ("queries.dev.tsv", "1\twhat maps keys\n2\twhat is baked\n", "queries", {"queries": 2}),
    ("qrels.dev.tsv", "1\t101\t1\n2\t102\t1\n", "qrels", {"qrels": 2}),
    ("qrels.train.tsv", "1\t0\t101\t1\n2\t0\t102\t1\n", "qrels", {"qrels": 2}),
    ("dev.tsv", "1\t101\t1\n1\t102\t1\n2\t102\t1\n", "qrels", {"qrels": 3}),
    ("bm25.tsv", "1\t101\t1\n1\t102\t2\n2\t102\t1\n", "runs", {"runs": 3}),
    ("run.one.tsv", "1\t101\t1\n2\t102\t1\n", "runs", {"runs": 2}),
    ("qidpidtriples.tsv", "1\t101\t102\n2\t102\t101\n", "pairs", {"pairs": 4}),
    ("triples.small.tsv", "what maps keys\tA dict maps all keys.\tBread is baked of flour.\n", "all",
     {"documents": 2, "queries": 1, "pairs": 2}),
    ("top1000.dev", "1\t101\twhat maps\tA dict maps.\n1\t102\twhat maps\tBread.\n", "all",
     {"documents": 2, "queries": 1, "pairs": 2}),
    ("hard.jsonl", lines({"anchor": "Why?", "positive": "A.", "negative": "B."}), "all",
     {"documents": 2, "queries": 1, "pairs": 2}),
    ("flag.jsonl", lines({"query": "Why?", "pos": ["A.", "B."], "neg": ["C."]}), "all",
     {"documents": 3, "queries": 1, "pairs": 3}),
    ("qrels.txt", "q1 0 d1 2\nq1 0 d2 0\n", "qrels", {"qrels": 2}),
    ("run.txt", "q1 Q0 d1 1 2.5 bm25\n", "runs", {"runs": 1}),
    ("topics.xml", TOPICS, "queries", {"queries": 2}),
    ("topics.txt", TOP, "queries", {"queries": 1}),
    ("trials.xml", '<topics>\n<topic number="1">A 45-year-old man.</topic>\n</topics>', "queries", {"queries": 1}),
    ("case.csv", CASE + "T,C,1,star wars,11,1,Star Wars,3\nT,C,1,star wars,12,2,Empire,\n", "queries-pairs",
     {"queries": 1, "pairs": 2}),
    ("basic.csv", "query,docid,rating\nstar wars,11,3\n", "queries-pairs", {"queries": 1, "pairs": 1}),
    ("snapshot.csv", "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\nS,t,1,star wars,11,1\n",
     "queries-pairs", {"queries": 1, "pairs": 1}),
    ("studio.json", json.dumps([TASK]), "all", {"documents": 1, "queries": 1, "pairs": 2, "grades": 2}),
    ("rated.json", json.dumps([RATED]), "all", {"documents": 1, "queries": 1, "pairs": 1, "grades": 1}),
    ("studio.csv", "annotation_id,annotator,id,query_id,doc_id,query,document,relevance\n1,3,7,q1,d1,W?,A,Relevant\n",
     "all", {"documents": 1, "queries": 1, "pairs": 1, "grades": 1}),
    ("argilla.json", json.dumps([RECORD], indent=1), "all", {"documents": 1, "queries": 1, "pairs": 2, "grades": 2}),
    ("argilla1.jsonl", lines(OLD_RECORD), "all", {"documents": 1, "queries": 1, "pairs": 1, "grades": 1}),
    ("argilla2.jsonl", lines(FLAT_RECORD), "all", {"documents": 1, "queries": 1, "pairs": 1, "grades": 1}),
    ("labels.csv", "query_id,doc_id,grade,origin\nq1,d1,2,people\n", "qrels", {"qrels": 1}),
    ("judgments.jsonl", lines(JUDGMENT, {**JUDGMENT, "step": "first", "grade": 0}), "judgments", {"judgments": 1}),
    ("people.csv", "query_id,doc_id,annotator,label\nq1,d1,al,yes\nq1,d1,bob,no\n", "judgments", {"judgments": 2}),
]  # fmt: skip


def kept(folder: Path, name: str, content: Content) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def counted(source: FileSource, kind: str) -> dict[str, int]:
    """How many rows of each part the importers read."""
    readers: dict[str, Callable[[], Any]] = {
        "documents": lambda: records.read_documents(source),
        "queries": lambda: records.read_queries(source, by_position=False),
        "pairs": lambda: records.read_pairs(source, 3),
        "qrels": lambda: read_grades(source, 3),
        "judgments": lambda: read_grades(source, 3),
        "runs": lambda: top_of_run(source, 10),
    }
    found = {part: len(list(readers[part]())) for part in HOLDS[kind]}
    table = tables.read_table(source)
    if table and table.has_assessors and "pairs" in found:
        found["grades"] = len([row for row in read_grades(source, 3) if not row.problem])
    return found


@pytest.mark.parametrize(("name", "content", "kind", "counts"), KINDS, ids=[one[0] for one in KINDS])
def test_each_kind_of_file_is_recognised_and_read(tmp_path, name, content, kind, counts):
    (source,) = list_sources(kept(tmp_path, name, content), name)
    found = detect(source)
    assert (found.kind, found.problem) == (kind, "")
    assert found.rows and all(len(row) == len(found.header) for row in found.rows)
    assert counted(source, kind) == counts


def test_what_a_person_says_of_columns_goes_before_what_their_names_say(tmp_path):
    path = kept(tmp_path, "x.json", json.dumps([{"frage": "Warum?", "antwort": "Darum.", "ok": True}]))
    assert detect(FileSource(path)).kind == "" and "columns" in detect(FileSource(path)).problem
    source = FileSource(path, fields={"frage": "query", "antwort": "text", "ok": "grade"})
    assert detect(source).kind == "all"
    assert [one.gold for one in records.read_pairs(source, 3)] == [1]


def test_keys_of_json_and_columns_of_parquet_that_are_no_field_are_metadata(tmp_path):
    row = {"doc_id": "d1", "text": ["A.", "B."], "year": 1999, "tags": ["x"], "metadata": {"p": 1}, "none": None}
    for name, content in (("x.jsonl", lines(row)), ("x.parquet", parquet_of(row))):
        (found,) = records.read_documents(FileSource(kept(tmp_path, name, content)))
        assert found.text == "A.\nB."
        assert json.loads(found.metadata) == {"year": "1999", "tags": ["x"], "p": 1}, name
    (ours,) = records.read_documents(FileSource(kept(tmp_path, "ours", lines({**DOCUMENTS[0], "url": "u", "n": 3}))))
    assert json.loads(ours.metadata) == {"url": "u", "n": 3}
    late = [{"id": n, "text": "x"} for n in range(1_001)] + [{"id": "last", "text": "x", "seldom": "y"}]
    *_others, last = records.read_documents(FileSource(kept(tmp_path, "late.jsonl", lines(*late))))
    assert json.loads(last.metadata) == {"seldom": "y"}


def test_answers_may_be_a_list_or_one_a_line(tmp_path):
    row = {"query_id": "q1", "query": "W?", "answers": ["a\nb", "c"]}
    files = {"x.parquet": (parquet_of(row), ["a\nb", "c"]), "x.csv": ('query,answers\nW?,"a\nc"\n', ["a", "c"])}
    for name, (content, answers) in files.items():
        (query,) = records.read_queries(FileSource(kept(tmp_path, name, content)), by_position=False)
        assert json.loads(query.answers) == answers


def test_topics_keep_what_is_not_their_query(tmp_path):
    first, second = records.read_queries(FileSource(kept(tmp_path, "t.xml", TOPICS)), by_position=False)
    assert (first.id, first.text) == ("1", "coronavirus origin") and second.text == "weather & virus"
    assert json.loads(first.metadata)["narrative"] == "seeking range of information"


# Grades


def grades_of(folder: Path, cells: list[str], *scale: int) -> list[Any]:
    text = "qid,docid,grade\n" + "".join(f"q1,d{n},{cell}\n" for n, cell in enumerate(cells))
    return list(read_grades(FileSource(kept(folder, "x.csv", text)), 3, *scale))


@pytest.mark.parametrize(
    ("cells", "grades"),
    [
        (["1.0", "0", "3"], [1, 0, 3]),
        (["yes", "No", "TRUE", "False"], [1, 0, 1, 0]),
        (["Relevant", "not relevant", "Not-Relevant", "irrelevant"], [1, 0, 0, 0]),
        (["yes", "1", "0"], [1, 1, 0]),
    ],
)
def test_grades_may_be_words(tmp_path, cells, grades):
    assert [(row.grade, row.problem) for row in grades_of(tmp_path, cells)] == [(grade, "") for grade in grades]


@pytest.mark.parametrize(
    ("cells", "relevant_from", "said"),
    [
        (["yes", "2"], 1, "the grade is '2', but line 2 has 'yes'; write all grades as numbers"),
        (["2", "No"], 1, "the grade is 'No', but line 2 has '2'; write all grades as numbers"),
        (["0", "yes"], 2, "the grade is 'yes', but on this scale 2 is the lowest relevant grade; write numbers"),
        (["1", "maybe"], 1, "the grade is not an integer, nor yes or no: 'maybe'"),
        (["1", "4"], 1, "grade 4 is above the highest grade 3; raise the scale to 4"),
    ],
)
def test_grades_that_could_mean_two_things_are_refused(tmp_path, cells, relevant_from, said):
    good, bad = grades_of(tmp_path, cells, relevant_from)
    assert (good.problem, bad.line, bad.problem) == ("", 3, said)


# Workbooks


SHEETS = {
    "Documents": [["Doc ID", "Text", None], [1, "A dict maps keys."], [None, None], [2, "Bread."]],
    "Queries": [["qid", "Question"], ["q1", "What maps keys?"]],
    "Grades": [["qid", "docid", "relevance"], ["q1", 1, 2.0], ["q1", 2, 0]],
    "Empty": [],
}


def test_the_sheets_of_a_workbook_are_files_of_their_own(tmp_path):
    found = [(source, detect(source)) for source in list_sources(kept(tmp_path, "b.xlsx", workbook_of(**SHEETS)), "b")]
    compare_files(found)
    assert {str(source): (one.kind, counted(source, one.kind)) for source, one in found} == {
        "b/Documents": ("documents", {"documents": 2}),
        "b/Queries": ("queries", {"queries": 1}),
        "b/Grades": ("qrels", {"qrels": 2}),
    }
    _one, second = records.read_documents(found[0][0])
    assert (second.line, second.id) == (4, "2")
    wide = workbook_of(Documents=[["id", "text"], ["d1", "A."], ["d2", "B.", "more"]])
    (source,) = list_sources(kept(tmp_path, "wide.xlsx", wide), "wide.xlsx")
    with pytest.raises(BadInput, match=r"wide\.xlsx, row 3: 3 .* 2"):
        list(records.read_documents(source))


def test_a_workbook_that_holds_too_much_is_refused_unread(tmp_path, monkeypatch):
    path = kept(tmp_path, "b.xlsx", excel_of("text", "A dict maps keys.", "Bread."))
    (source,) = list_sources(path, "b.xlsx")
    assert [(one.line, one.text) for one in records.read_documents(source)] == [(2, "A dict maps keys."), (3, "Bread.")]
    monkeypatch.setattr(workbooks, "MAX_TEXTS", 10)
    with pytest.raises(BadInput, match=r"b\.xlsx: .*0 MB"):
        list_sources(kept(tmp_path, "c.xlsx", excel_of("text", "Bread.")), "b.xlsx")
    with pytest.raises(BadInput, match="no filled cell"):
        monkeypatch.undo()
        list_sources(kept(tmp_path, "empty.xlsx", workbook_of(One=[])), "empty.xlsx")


# JSON that is no line


@pytest.mark.parametrize("size", [3, 50, 1 << 20])
def test_objects_are_read_wherever_they_stand(tmp_path, size, monkeypatch):
    text = 'Some "text", with [ ] { } and \\ and é\n'
    rows = [{"_id": f"d{n}", "text": text, "n": [1, {"a": None}]} for n in range(9)]
    pieces = FileSource.pieces
    monkeypatch.setattr(FileSource, "pieces", lambda self: pieces(self, size))
    for indent in (None, 0, 2):
        source = FileSource(kept(tmp_path, "x.json", json.dumps(rows, indent=indent, ensure_ascii=False)))
        found = list(json_objects.read_objects(source))
        assert [row for _line, row in found] == rows
        written = json.dumps(rows, indent=indent, ensure_ascii=False).split("\n")
        if indent is None:  # One line: the number of the object tells more.
            assert [number for number, _row in found] == list(range(1, 10))
        else:
            assert all('"_id"' in written[line - 1] or '"_id"' in written[line] for line, _row in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"_id": "d1", "text": "A."},\n{"_id": "d2", "te', "x, line 2: the JSON ends in the middle"),
        ('[{"_id": "d1", "text": "A."},\n', "x, line 2: the JSON ends in the middle"),
        ('[{"_id": "d1", "text": "A."},\n {"_id":, "text": 1}]', "x, line 2: not JSON, from character 8 on"),
        ('[{"_id": "d1", "text": "A."},\n 7]', "x, line 2: not a JSON object"),
        ('[{"_id": "d1", "text": "A."}]\nmore', "x, line 2: text after the end of the JSON list; remove it"),
        ('[{"_id": "d1", "text": "A\\u0000."}]', "x, line 1: a NUL character"),
        ('[{"_id": "d1", "text": "A\\ud800."}]', "x, line 1: half of a character"),
        ('[{"_id": "d1", "text": NaN}]', "x, line 1: not JSON"),
        (b'[{"_id": "d1",\n "text": "caf\xe9"}]', "x, line 2: byte 14 is not UTF-8; convert the file"),
        ("[" * 100_000, "x, line 1: not JSON"),
        ("[]", "x: the file is empty"),
    ],
)
def test_a_list_that_is_damaged_is_refused_by_its_line(tmp_path, text, said):
    source = FileSource(kept(tmp_path, "x", text), name="x")
    with pytest.raises(BadInput) as refused:
        found = detect(source)
        if found.problem:
            raise BadInput(found.problem)
        list(records.read_documents(source))
    assert str(refused.value).startswith(said)


def test_a_list_on_one_line_may_be_longer_than_a_line_and_an_object_may_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE", 2_000)
    monkeypatch.setattr(json_objects, "MAX_LINE", 2_000)
    monkeypatch.setattr(recognition, "HEAD", 500)
    rows = [{"id": f"d{n}", "text": "é" * 200} for n in range(99)]
    path = kept(tmp_path, "x.json", json.dumps(rows, ensure_ascii=False))
    (source,) = list_sources(path, "x.json")
    assert detect(source).kind == "documents" and len(list(records.read_documents(source))) == 99
    pieces = FileSource.pieces
    monkeypatch.setattr(FileSource, "pieces", lambda self: pieces(self, 100))
    path.write_text(json.dumps([{"id": "d1", "text": "x" * 9_000}]))
    with pytest.raises(BadInput, match=r"x\.json, line 1: .*0 MB"):
        list(records.read_documents(FileSource(path, name="x.json")))


def test_a_large_parquet_file_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_rows, "BATCH", 7)
    rows = [{"id": n, "text": f"Text {n}."} for n in range(100)]
    source = FileSource(kept(tmp_path, "x.parquet", parquet_of(*rows, row_group_size=10)))
    found = list(records.read_documents(source))
    assert [row.line for row in found] == list(range(1, 101)) and found[-1].id == "99"


MEASURE = """
import sys
from django.conf import settings
settings.configure(USE_I18N=False)
from corpus.importing import records
from corpus.importing.detection import list_sources
import openpyxl, pyarrow.parquet
from tests.memory import peak_megabytes
before = peak_megabytes()
(source,) = list_sources(__import__("pathlib").Path(sys.argv[1]))
rows = sum(1 for row in records.read_documents(source))
print(rows, peak_megabytes() - before)
"""


@pytest.mark.weekly
@pytest.mark.parametrize("form", ["parquet", "json", "xlsx"])
def test_memory_does_not_grow_with_the_rows(tmp_path, form):
    path, count = tmp_path / f"x.{form}", 20_000 if form == "xlsx" else 200_000
    texts = (f"{n} " + "a word and another " * 60 for n in range(count))
    if form == "parquet":
        table = pyarrow.table({"id": range(count), "text": list(texts)})
        parquet.write_table(table, path, row_group_size=count)
    elif form == "json":
        with path.open("w") as file:
            file.write("[" + ", ".join(json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)) + "]")
    else:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Texts")
        sheet.append(["id", "text"])
        for n, text in enumerate(texts):
            sheet.append([n, text])
        book.save(path)
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows, megabytes = map(int, done.stdout.split())
    assert rows == count and megabytes < 120, f"{megabytes} MB more for {count:,} rows"


# Into the database

DAMAGED: list[tuple[str, Content, str]] = [
    ("corpus.parquet", parquet_of(*DOCUMENTS)[:-9], "the Parquet file is damaged or not complete; copy it again"),
    ("nul.parquet", parquet_of({"id": "d1", "text": "a\0b"}), "row 1: a NUL character; remove it"),
    ("bytes.parquet", parquet_of({"id": "d1", "text": b"\xff\xfe"}), "row 1: bytes that are not UTF-8"),
    ("corpus.json", json.dumps(DOCUMENTS)[:-9], "line 1: the JSON ends in the middle"),
    ("b.xlsx", workbook_of(**SHEETS)[:-99], "the zip archive is damaged"),
    ("c.xlsx", zip_of({"xl/workbook.xml": "<x", "/Content": "y"}), "has a path outside the archive"),
    ("d.xlsx", zip_of({"xl/workbook.xml": "<x"}), "the workbook is damaged or locked; save it again"),
    ("qidpid.tsv", "1\t101\t102\n1\t101\n", "line 2: 2 columns instead of 3"),
    ("triples.tsv", "what maps keys\tA dict maps all keys.\tBread is baked of flour.\nwhat\tx\n", "line 2: 2 columns"),
    ("conflict.jsonl", lines({"query": "W?", "pos": ["A."], "neg": ["A."]}), "the pair is in line 1 with another"),
    ("topics.xml", TOPICS[:-40], "line 8: a <topic> that does not end"),
    ("studio.json", json.dumps([TASK]).replace("Not relevant", "Perhaps"), "line 1: the grade is not an integer"),
    ("argilla.json", json.dumps([RECORD]).replace('"d1"', '"d 1"'), 'line 1: "doc_id" contains white space'),
    ("judgments.jsonl", lines(JUDGMENT, {**JUDGMENT, "kind": "ghost", "doc_id": "d2"}), "line 2: the kind is 'ghost'"),
    ("judgments2.jsonl", lines(JUDGMENT, {**JUDGMENT, "doc_id": "d9"}), 'line 2: no document has the id "d9"'),
    ("bm25.tsv", "1\t101\t1\n1\t102\tx\n", ""),
]
MODELS = (Document, Query, Pair, Judgment, Assessor, Label)


def make_base(folder: Path) -> None:
    """The collection "books", which has every id of the files here."""
    documents = [*DOCUMENTS, *({"_id": name, "text": f"Text {name}."} for name in ("101", "102", "11", "12"))]
    queries = [*QUERIES, {"_id": "1", "text": "One?"}, {"_id": "2", "text": "Two?"}]
    paths = [kept(folder, f"base-{name}.jsonl", lines(*rows)) for name, rows in
             (("corpus", documents), ("queries", queries))]  # fmt: skip
    import_files("books", *paths)


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "content", "said"), DAMAGED, ids=[one[0] for one in DAMAGED])
def test_a_damaged_file_gets_one_line_and_changes_nothing(tmp_path, name, content, said):
    make_base(tmp_path)
    before = [list(model.objects.order_by("pk").values()) for model in MODELS]
    path = kept(tmp_path, name, content)
    report, lines = import_files("books", path, "--update")
    *_recognised, line = lines.splitlines()
    assert not report and line.startswith(str(path)) and said in line
    assert before == [list(model.objects.order_by("pk").values()) for model in MODELS]


@pytest.mark.django_db
def test_the_parts_of_a_file_are_taken_together_whatever_they_are_called(tmp_path):
    folder = tmp_path / "mteb"
    (folder / "corpus").mkdir(parents=True)
    for number, row in enumerate(DOCUMENTS):
        kept(folder, f"corpus/test-0000{number}-of-00002.parquet", parquet_of(row))
    kept(folder, "corpus/zzz.parquet", parquet_of({**DOCUMENTS[0], "_id": "d9"}))
    kept(folder, "queries.jsonl", lines(*QUERIES))
    kept(folder, "qrels.jsonl", lines({"query-id": "q1", "corpus-id": "d1", "score": 1}))
    report, _said = import_files("shards", folder)
    assert (report["documents"], report["queries"], report["judgments"]) == (3, 2, 1)
    assert set(Document.objects.values_list("external_id", flat=True)) == {"d1", "d2", "d9"}


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "content", "kind", "counts"), first_slow(KINDS, 6), ids=[one[0] for one in KINDS])
def test_each_kind_of_file_is_imported_once(tmp_path, name, content, kind, counts):
    make_base(tmp_path)
    path = kept(tmp_path, name, content)
    first, again = (import_files("books", path, "--update")[0] for _ in range(2))
    found = {part: first["new"][part] + first["updated"][part] + first["unchanged"][part] for part in first["new"]}
    grades = counts.get("grades", counts.get("judgments", counts.get("qrels")))
    assert all(found[part] == counts[part] for part in ("documents", "queries") if part in counts)
    assert grades is None or found["judgments"] == grades
    assert not again["changed"] and Collection.objects.count() == 1
