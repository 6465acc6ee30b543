"""Tables: what columns are, by name in every reader and in any order, and every way in which a table can be wrong."""

import csv
import io
import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.runs.files import read_qrels, read_run
from config.env import ROOT
from corpus.errors import BadInput, OptionWouldHelp
from corpus.formats.files import FileSource
from corpus.importing import records, tables
from corpus.importing.grades import read_grades
from corpus.models import Judgment, Label, Pair
from tests.called import call
from tests.corpus.importing.file_contents import parquet_of, workbook_of
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.imported_files import import_files

TEXTS = 'Doc ID,Title,Text,Year\nd1,One,"First, with ""quotes""\nand a second line",1999\nd2,,Second,\n'


def source_of(folder: Path, text: str | bytes, name: str = "given.csv", **fields: str) -> FileSource:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return FileSource(path, name=name, fields=fields)


def columns_of(folder: Path, header: str, name: str = "given.csv", **fields: str) -> dict[str, str]:
    table = tables.read_table(source_of(folder, f"{header}\n", name, **fields))
    assert table is not None
    return table.fields


def test_documents_of_a_csv_keep_quotes_line_breaks_and_other_columns(tmp_path):
    first, second = records.read_documents(source_of(tmp_path, TEXTS))
    assert (first.line, first.id, first.title) == (2, "d1", "One")
    assert first.text == 'First, with "quotes"\nand a second line' and first.metadata == '{"Year": "1999"}'
    assert (second.line, second.id, second.text, second.metadata) == (4, "d2", "Second", "{}")


@pytest.mark.parametrize(
    ("header", "name", "fields"),
    [
        ("qid,Query Text,docno,body,relevance", "x.csv", ["query_id", "query", "doc_id", "text", "grade"]),
        ("queryId,documentId,label", "x.csv", ["query_id", "doc_id", "grade"]),
        ("query-id,corpus-id,score", "test.csv", ["query_id", "doc_id", "grade"]),
        ("query_id;doc_id;teacher_score", "x.csv", ["query_id", "doc_id", "score"]),
        ("id,question,answer", "x.csv", ["query_id", "query", "answers"]),
        ("id,text", "queries.csv", ["query_id", "query"]),
        ("id,text", "passages.csv", ["doc_id", "text"]),
        ("id|content|content_type", "x.csv", ["doc_id", "text", "metadata"]),
        (",id,passage", "x.csv", ["ignore", "doc_id", "text"]),
        ("text,document", "x.csv", ["text", "metadata"]),
        ("7\thow tall is it", "queries.tsv", ["query_id", "query"]),
        ("7\tA text.", "collection.tsv", ["doc_id", "text"]),
        ("D12\thttp://a.example/\tA title\tA body", "docs.tsv", ["doc_id", "metadata", "title", "text"]),
        ("Frage\tAntwort", "x.tsv", ["metadata", "metadata"]),
    ],
)
def test_what_a_column_is_shows_in_its_header(tmp_path, header, name, fields):
    assert list(columns_of(tmp_path, header, name).values()) == fields


def test_what_the_user_says_goes_before_the_header(tmp_path):
    found = columns_of(tmp_path, "text,words", words="text")
    assert found == {"text": "metadata", "words": "text"}
    with pytest.raises(BadInput, match='cannot be "words"'):
        columns_of(tmp_path, "a,b", a="words")
    with pytest.raises(BadInput, match=r'line 1: .*"a" and "b".*"text"'):
        columns_of(tmp_path, "a,b", a="text", b="text")


def test_rows_that_are_pairs_give_each_text_once_and_a_file_without_a_header_keeps_its_quotes(tmp_path):
    text = "query,doc,label\nWhich?,First.,1\nWhich?,Second.,0\nWhy?,First.,\n"
    source = source_of(tmp_path, text)
    assert [one.text for one in records.read_documents(source)] == ["First.", "Second."]
    queries = list(records.read_queries(source, by_position=False))
    assert [one.text for one in queries] == ["Which?", "Why?"]
    pairs = list(records.read_pairs(source, 1))
    assert [one.gold for one in pairs] == [1, 0, None]
    assert {one.query for one in pairs} == {one.id for one in queries}
    # A column of whole numbers that has gaps may be written as 1.0.
    source = source_of(tmp_path, "qid,docid,gold,score\nq,d,1.0,0.5\nq,e,,\n")
    assert [(one.gold, one.teacher_score) for one in records.read_pairs(source, 1)] == [(1, 0.5), (None, None)]
    source = source_of(tmp_path, '7\t"How tall\n8\tis it" then\n', "queries.tsv")
    assert [one.text for one in records.read_queries(source, by_position=False)] == ['"How tall', 'is it" then']
    source = source_of(tmp_path, "annotator;relevance;qid;docid\nalice;1;q1;d1\nbob;x;q1;d1\nbob;0;q1\n")
    good, wrong, ragged = read_grades(source, 1)
    assert (good.query, good.document, good.grade, good.assessor) == ("q1", "d1", 1, "alice")
    assert wrong.kind == "malformed" and ragged.problem == "3 columns instead of 4"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXTS + "d3,Three,Third\n", "given.csv, line 5: 3 columns instead of 4"),
        (TEXTS + 'd3,,"open,\n', "given.csv, line 5: a quoted text that does not end"),
        (TEXTS + 'd3,,"a"b,\n', "given.csv, line 5: text after a closing quote"),
        ("id,text,text\n", 'given.csv, line 1: two columns have the header "text"; rename one'),
        ("id,words\n1,x\n", 'given.csv: no column is "text" among id, words: map "id" to it'),
        (TEXTS.encode() + b"d3,,caf\xe9,\n", "given.csv, line 5: byte 8 is not UTF-8; convert the file"),
        (TEXTS.encode("utf-16"), "given.csv: this is text in UTF-16"),
        (TEXTS + "d 3,,x,\n", 'given.csv, line 5: "doc_id" contains white space'),
        ("query,text,qid\na,x,1\nb,x,1\n", 'given.csv, line 3: "1" has another text than in line 2'),
        ("", "given.csv: the file is empty"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, said):
    source = source_of(tmp_path, text)
    with pytest.raises(BadInput) as refused:
        list(records.read_documents(source))
        list(records.read_queries(source, by_position=False))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("q,d,2,", "grade 2 is above the highest grade 1"),
        ("q,d,one,", "the grade is not an integer, nor yes or no: 'one'"),
        ("q,d,1.5,", "the grade is not an integer, nor yes or no: '1.5'"),
        ("q,d,1,inf", "the score is not a finite number: 'inf'"),
        (",d,1,", '"query_id" is empty'),
    ],
)
def test_a_wrong_cell_of_a_pair_is_named(tmp_path, row, said):
    with pytest.raises(BadInput, match=f"line 2: {said}"):
        list(records.read_pairs(source_of(tmp_path, f"qid,docid,grade,score\n{row}\n"), 1))


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1)


@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1), delimiter=st.sampled_from(",;|"))
def test_what_the_library_writes_is_read_back(tmp_path_factory, rows, delimiter):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("title", "text"), *rows])
    source = source_of(tmp_path_factory.mktemp("tables"), out.getvalue())
    table = tables.read_table(source)
    assert table is not None
    assert [tuple(row) for _line, row in tables.read_rows(source, table)] == rows


# Ids that both sides have: what is read in the wrong place is read all the same.
GRADES = [("1", "2", "1"), ("2", "1", "0"), ("1", "3", "2")]
RANKED = [("1", "2", "3.5"), ("1", "3", "2.5"), ("2", "1", "1.5")]
NAMES = {
    "query": ("query_id", "qid", "query-id", "queryId", "topic", "Query ID", "search_id", "query"),
    "document": ("doc_id", "docid", "corpus-id", "docno", "Document ID", "pid", "document", "passage"),
    "grade": ("grade", "label", "relevance", "rel", "Judgment", "rating", "relevance_score", "relevancy"),
}
GIVEN = {"1": {"2": 1, "3": 2}, "2": {"1": 0}}


def write(folder: Path, name: str, header: list[str], rows: list[list[str]], delimiter: str) -> Path:
    path = folder / name
    path.write_text("".join(delimiter.join(cells) + "\n" for cells in [header, *rows]))
    return path


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " "])
def test_qrels_in_any_order_of_columns_under_any_of_their_names(tmp_path, delimiter):
    for names in zip(*NAMES.values(), strict=True):
        if delimiter == " " and any(" " in name for name in names):
            continue
        for order in permutations(range(3)):
            rows = [[row[place] for place in order] for row in GRADES]
            path = write(tmp_path, "x.txt", [names[place] for place in order], rows, delimiter)
            assert read_qrels(path) == GIVEN, (names, order)


def test_qrels_of_other_forms_in_any_order_of_columns(tmp_path):
    for order in permutations(range(3)):
        names = [("query_id", "doc_id", "grade")[place] for place in order]
        rows = [{name: row[place] for name, place in zip(names, order, strict=True)} for row in GRADES]
        (tmp_path / "x.parquet").write_bytes(parquet_of(*rows))
        (tmp_path / "x.xlsx").write_bytes(workbook_of(names, *(list(row.values()) for row in rows)))
        (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for name in ("x.parquet", "x.xlsx", "x.jsonl"):
            assert read_qrels(tmp_path / name) == GIVEN, (name, order)


@pytest.mark.parametrize("delimiter", ["\t", ",", " "])
def test_runs_in_any_order_of_columns(tmp_path, delimiter):
    given = {"1": {"2": 3.5, "3": 2.5}, "2": {"1": 1.5}}
    for order in permutations(range(3)):
        names = [("query_id", "docid", "score")[place] for place in order]
        rows = [[row[place] for place in order] for row in RANKED]
        assert read_run(write(tmp_path, "r.txt", names, rows, delimiter)) == given, order
    ranked = write(tmp_path, "r.txt", ["rank", "qid", "docid"], [["1", "1", "2"], ["2", "1", "3"]], delimiter)
    assert list(read_run(ranked)["1"]) == ["2", "3"]


def test_without_names_the_places_tell(tmp_path):
    for header in ("", "a\tb\tc\n", "von\tnach\tlabelled\n"):
        (tmp_path / "x").write_text(header + "1\t2\t1\n2\t1\t0\n1\t3\t2\n")
        assert read_qrels(tmp_path / "x") == GIVEN
    (tmp_path / "x").write_text("a\tb\tlabel\n1\t2\t1\n")
    with pytest.raises(OptionWouldHelp, match=r'"query_id" among a, b, label: map "a"') as refused:
        read_qrels(tmp_path / "x")
    assert refused.value.problems[0][0] == "column"
    fields = {"b": "query_id", "a": "doc_id"}
    assert read_qrels(tmp_path / "x", fields) == {"2": {"1": 1}}


def test_evaluate_says_what_it_does_not_read_and_shows_every_measure_of_every_query(tmp_path):
    header = ["doc_id", "note", "query_id", "grade"]
    qrels = write(tmp_path, "q.tsv", header, [[d, "x", q, g] for q, d, g in GRADES], "\t")
    (tmp_path / "r.run").write_text("1 Q0 3 1 2.0 x\n1 Q0 2 2 1.0 x\n2 Q0 1 1 3.0 x\n")
    asked = ("evaluate", "--qrels", qrels, "--run", tmp_path / "r.run", "--measures", "nDCG@10 P@1", "--per-query")
    done = call(*asked)
    assert done.out.splitlines()[1:] == [
        "  nDCG@10            0.5000", "  P@1                0.5000", "  query nDCG@10    P@1",
        "  1      1.0000 1.0000", "  2      0.0000 0.0000",
    ]  # fmt: skip
    assert f"{qrels}: " in done.err and ": note (" in done.err


@pytest.mark.django_db
def test_judgments_settle_the_pairs_that_their_header_names(tmp_path):
    books = make_collection("books", grades=2)
    queries = {name: make_query(books, external_id=name) for name in ("1", "2", "3")}
    documents = {name: make_document(books, external_id=name) for name in ("1", "2", "3")}
    for query in queries.values():
        for document in documents.values():
            make_pair(books, query, document)
    path = write(tmp_path, "j.tsv", ["doc_id", "grade", "query_id"], [[d, g, q] for q, d, g in GRADES], "\t")
    assert call("import_judgments", "books", "--assessor", "alice", "--kind", "human", path).code == 0
    rows = Label.objects.values_list("pair__query__external_id", "pair__document__external_id", "grade")
    assert sorted((query, document, str(grade)) for query, document, grade in rows) == sorted(GRADES)


@pytest.mark.django_db
def test_the_import_names_columns_that_are_not_read_and_grades_of_several_people(tmp_path):
    path = write(
        tmp_path, "x.csv", ["query", "document", "annotator_1", "annotator_2", "source"],
        [["what is tea", "Tea is a drink", "1", "0", "web"], ["what is tea", "Water boils", "0", "", "web"]], ",",
    )  # fmt: skip
    report, said = import_files("books", path)
    assert list(report["unused_columns"][str(path)]) == ["source"] and ": source (" in said
    rows = Judgment.objects.values_list("assessor__name", "assessor__kind", "pair__document__text", "grade")
    assert sorted(rows) == [
        ("annotator_1", "human-import", "Tea is a drink", 1), ("annotator_1", "human-import", "Water boils", 0),
        ("annotator_2", "human-import", "Tea is a drink", 0),
    ]  # fmt: skip
    assert Pair.objects.count() == 2


@pytest.mark.django_db
def test_a_label_without_its_document_is_refused_with_the_option_that_helps(tmp_path):
    rows = [["what is tea", "Tea is a drink", "1"], ["what is tea", "Water boils", "0"]]
    path = write(tmp_path, "x.csv", ["query", "chunk", "label"], rows, ",")
    assert 'map "chunk" to "text"' in import_files("books", path)[1]
    report, _said = import_files("books", path, "--column", "chunk=text")
    assert report["new"] == {"documents": 2, "queries": 1, "pairs": 2, "judgments": 2}


def test_names_of_files_hold_any_letter_in_a_locale_of_ascii_alone(tmp_path):
    (tmp_path / "straße.tsv").write_text("doc_id\tquery_id\tgrade\n2\t1\t1\n")
    (tmp_path / "r.run").write_text("1 Q0 2 1 1.0 x\n")
    asked = [sys.executable, str(ROOT / "manage.py"), "evaluate", "--qrels", "straße.tsv", "--run", "missing-ß.run"]
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    found = subprocess.run([*asked, "--measures", "P@1"], cwd=tmp_path, env=environment, capture_output=True)
    assert found.returncode == 2
    assert found.stderr.decode().startswith("missing-ß.run: ") and found.stderr.endswith(b"no such file\n")
