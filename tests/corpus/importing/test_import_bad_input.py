"""Every kind of bad input is refused with exit 2 and one line, and leaves nothing behind."""

import gzip
import json
from io import StringIO

import pytest
from django.core.management import call_command

from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query

pytestmark = pytest.mark.django_db

DOCUMENTS = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "title": "", "text": "Second."}]
QUERIES = [{"_id": "q1", "text": "Which?"}]
HEADER = "query-id\tcorpus-id\tscore\n"


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GOOD = {"corpus": lines(DOCUMENTS), "queries": lines(QUERIES)}


@pytest.fixture
def refused(tmp_path):
    """Import files that are good but for those given; the line on standard error."""

    def run(*options, **changed):
        arguments = ["small", *options]
        for name, content in {**GOOD, **changed}.items():
            path = tmp_path / name
            path.write_bytes(content)
            arguments += [f"--{name}", str(path)]
        out, err = StringIO(), StringIO()
        with pytest.raises(SystemExit) as end:
            call_command("import_collection", *arguments, stdout=out, stderr=err)
        assert end.value.code == 2
        assert out.getvalue() == ""
        assert err.getvalue().count("\n") == 1
        for model in (Collection, Document, Query, Pair, Assessor, Judgment):
            assert not model.objects.exists()
        return err.getvalue().replace(f"{tmp_path}/", "")

    return run


def test_the_same_files_without_a_fault_are_accepted(tmp_path):
    (tmp_path / "corpus").write_bytes(lines(DOCUMENTS))
    (tmp_path / "queries").write_bytes(lines(QUERIES))
    (tmp_path / "qrels").write_text(HEADER + "q1\td1\t1\n")
    options = [f"--{name}={tmp_path / name}" for name in ("corpus", "queries", "qrels")]
    call_command("import_collection", "small", *options, stdout=StringIO())
    assert Judgment.objects.count() == 1


def test_broken_json(refused):
    said = refused(corpus=b'{"_id": "d1", "text": "First."}\n\n{"_id": "d2", "text": \n')
    assert said.startswith("corpus, line 3: not JSON")


def test_a_missing_field(refused):
    said = refused(corpus=lines([*DOCUMENTS, {"_id": "d3", "title": "Three"}]))
    assert said.startswith('corpus, line 3: the field "text" is missing')


def test_a_missing_id_of_a_query(refused):
    said = refused(queries=lines([*QUERIES, {"text": "Why?"}]))
    assert said.startswith('queries, line 2: the field "_id" is missing')


def test_a_duplicate_document_id(refused):
    said = refused(corpus=lines(DOCUMENTS) + b"\r\n" + lines([{"_id": "d1", "text": "Again."}]))
    assert said.startswith('corpus, line 4: the id "d1" stands already in line 1')


def test_a_duplicate_query_id(refused):
    said = refused(queries=lines([*QUERIES, {"_id": "q2", "text": "Why?"}, {"_id": "q1", "text": "How?"}]))
    assert said.startswith('queries, line 3: the id "q1" stands already in line 1')


def test_an_unknown_query_id_in_qrels(refused):
    said = refused(qrels=(HEADER + "q1\td1\t1\nq9\td1\t1\n").encode())
    assert said.startswith('qrels, line 3: no query has the id "q9"')


def test_an_unknown_document_id_in_qrels(refused):
    said = refused(qrels=b"q1 0 d1 1\n\nq1 0 d9 1\n")
    assert said.startswith('qrels, line 3: no document has the id "d9"')


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"q1 0 d1 1\nq1 0 d2\n", "qrels, line 2: 3 columns instead of 4"),
        (b"query-id\tcorpus-id\tscore\nq1\td1\t1\textra\n", "qrels, line 2: 4 columns instead of 3"),
        (b"q1\td1\t1\nq1\td2\n", "qrels, line 2: 2 columns instead of 3"),
        (b"q1 d1\n", "qrels, line 1: 2 columns"),
        (b"q1 0 d1 1 5 6 7\n", "qrels, line 1: 7 columns"),
    ],
)
def test_a_wrong_number_of_columns(refused, content, said):
    assert refused(qrels=content).startswith(said)


@pytest.mark.parametrize("grade", ["1.5", "one", "0x1", "1e1"])
def test_a_grade_that_is_not_an_integer(refused, grade):
    said = refused(qrels=f"q1 0 d1 {grade}\n".encode())
    assert said.startswith("qrels, line 1: the grade is not an integer, nor yes or no")


def test_a_grade_above_the_scale(refused):
    assert refused("--grades=2", qrels=b"q1 0 d1 2\nq1 0 d2 3\n").startswith("qrels, line 2: grade 3 is above")


def test_a_document_without_text(refused):
    said = refused(corpus=lines([*DOCUMENTS, {"_id": "d3", "title": "", "text": " \n "}]))
    assert said == 'corpus, line 3: document "d3" has no text; choose to keep documents without text (--empty)\n'


def test_a_query_without_text(refused):
    assert refused("--empty=keep", queries=b'{"_id": "q1", "text": " "}\n').startswith("queries, line 1")


def test_bytes_that_are_not_utf8(refused):
    said = refused(corpus=lines(DOCUMENTS) + b'{"_id": "d3", "text": "caf\xe9"}\n')
    assert said.startswith("corpus, line 3: byte 27 is not UTF-8")


@pytest.mark.parametrize("text", [b'"a\0b"', b'"a\\u0000b"'])
def test_nul_plain_or_escaped(refused, text):
    said = refused(corpus=lines(DOCUMENTS) + b'{"_id": "d3", "text": ' + text + b"}\n")
    assert said.startswith("corpus, line 3: a NUL")


def test_nul_in_metadata_and_in_xml(refused):
    metadata = b'{"_id": "d3", "text": "x", "metadata": {"a": ["\\u0000"]}}\n'
    assert refused(corpus=lines(DOCUMENTS) + metadata).startswith("corpus, line 3: a NUL")
    assert refused(corpus=b"<doc>\n<docno>1</docno>\n<text>a&#0;</text></doc>").startswith("corpus, line 3: a NUL")


def test_a_truncated_gzip_file(refused):
    whole = gzip.compress(b"".join(lines([{"_id": f"d{n}", "text": f"Text {n * n}."}]) for n in range(5000)))
    said = refused(corpus=whole[: len(whole) // 2])
    assert said.startswith("corpus, line ") and "ends in the middle" in said


def test_a_damaged_gzip_file(refused):
    whole = bytearray(gzip.compress(lines(DOCUMENTS)))
    whole[-6] ^= 255
    assert "damaged" in refused(corpus=bytes(whole))


@pytest.mark.parametrize("name", ["with space", "tab\there", ""])
def test_an_id_that_a_trec_file_could_not_hold(refused, name):
    assert refused(corpus=lines([{"_id": name, "text": "x"}])).startswith('corpus, line 1: "_id"')


def test_a_surrogate_without_its_half(refused):
    assert refused(corpus=b'{"_id": "d1", "text": "\\ud800"}\n').startswith("corpus, line 1: not JSON")


def test_numbers_that_the_database_cannot_hold(refused):
    said = refused(corpus=b'{"_id": "d1", "text": "x", "metadata": {"n": 1e999}}\n')
    assert said.startswith('corpus, line 1: "metadata" cannot be stored')


def test_an_xml_record_that_does_not_end(refused):
    assert refused(corpus=b"<doc>\n<docno>1</docno>\n<text>x").startswith("corpus, line 1: a <doc> that does not end")


def test_answers_that_are_no_strings(refused):
    said = refused(queries=b'{"_id": "q1", "text": "Which?", "answers": [1]}\n')
    assert said.startswith('queries, line 1: "answers" is not a list of strings')


def test_a_file_that_is_none_of_the_formats(refused):
    assert refused(corpus=b"words\nmore words\n").startswith("corpus, line 1: neither JSON")
    assert refused(corpus=b"id,words\n1,x\n").startswith('corpus: no column is "text" among id, words: map "id" to it')


def test_an_empty_corpus(refused):
    assert refused(corpus=b"\n\n").startswith("corpus: the file is empty")


def test_a_missing_file(tmp_path):
    err = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("import_collection", "small", "--corpus=/none", "--queries=/none", stderr=err)
    assert end.value.code == 2 and err.getvalue() == "/none: there is no such file\n"


def test_unknown_ids_in_pairs_and_runs(refused):
    pairs = b'{"query_id": "q1", "doc_id": "d1"}\n{"query_id": "q1", "doc_id": "nope"}\n'
    assert refused(pairs=pairs).startswith('pairs, line 2: no document has the id "nope"')
    assert refused(runs=b"q1 Q0 d1 1 2.0 x\nqx Q0 d1 1 1.0 x\n").startswith('runs, line 2: no query has the id "qx"')


def test_pairs_that_contradict_each_other(refused):
    pairs = b'{"query_id": "q1", "doc_id": "d1", "gold": 1}\n{"query_id": "q1", "doc_id": "d1", "gold": 0}\n'
    assert refused(pairs=pairs).startswith("pairs, line 2: the pair stands in line 1")


def test_a_judgment_that_stands_twice(refused):
    assert refused(qrels=b"q1 0 d1 1\nq1 0 d1 0\n").startswith("qrels, line 2: the pair stands already in line 1")


def test_a_run_without_a_number(refused):
    assert refused(runs=b"q1 Q0 d1 1 nan x\n").startswith("runs, line 1: the score is not a number")


def test_a_name_that_no_address_could_hold(tmp_path):
    path = tmp_path / "corpus"
    path.write_bytes(lines(DOCUMENTS))
    err = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("import_collection", "Not a name", f"--corpus={path}", f"--queries={path}", stderr=err)
    assert end.value.code == 2 and "Not a name" in err.getvalue()
    assert not Collection.objects.exists()


def test_a_document_that_a_run_names_twice(refused):
    said = refused(runs=b"q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.5 x\nq1 Q0 d1 3 1.0 x\n")
    assert said.startswith('runs, line 3: document "d1" is listed twice for query "q1"')
