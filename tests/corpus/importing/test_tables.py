"""CSV and TSV: what their columns are, rows that break over lines, and every way in which a table can be wrong."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import records, tables
from corpus.importing.grades import read_grades

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
