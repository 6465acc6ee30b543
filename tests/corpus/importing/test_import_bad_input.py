"""Every kind of bad input is refused with exit 2 and one line, and leaves nothing behind."""

import gzip

import pytest

from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query
from tests.corpus.importing.file_contents import lines
from tests.imported_files import import_files

pytestmark = pytest.mark.django_db

DOCUMENTS = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "title": "", "text": "Second."}]


GOOD = {"corpus": lines(*DOCUMENTS).encode(), "queries": lines({"_id": "q1", "text": "Which?"}).encode()}
PACKED = gzip.compress(lines(*({"_id": f"d{n}", "text": f"Text {n * n}."} for n in range(5000))).encode(), mtime=0)
DAMAGED = bytearray(gzip.compress(GOOD["corpus"], mtime=0))
DAMAGED[-6] ^= 255
# The part of the import, its file (that of documents behind the good ones where it begins with "+"), what is said.
BAD: list[tuple[str, bytes, str]] = [
    ("corpus", b'{"_id": "d1", "text": "First."}\n\n{"_id": "d2", "text": \n', "corpus, line 3: not JSON"),
    ("corpus", b"+" + lines({"_id": "d3", "title": "x"}).encode(), 'corpus, line 3: the field "text" is missing'),
    (
        "corpus",
        b"+" + lines({"_id": "d3", "text": " \n "}).encode(),
        'corpus, line 3: document "d3" has no text; choose',
    ),
    ("corpus", b'+{"_id": "d3", "text": "caf\xe9"}\n', "corpus, line 3: byte 27 is not UTF-8"),
    ("corpus", b'+{"_id": "d3", "text": "a\0b"}\n', "corpus, line 3: a NUL"),
    ("corpus", b'+{"_id": "d3", "text": "a\\u0000b"}\n', "corpus, line 3: a NUL"),
    ("corpus", b'+{"_id": "d3", "text": "x", "metadata": {"a": ["\\u0000"]}}\n', "corpus, line 3: a NUL"),
    ("corpus", b"<doc>\n<docno>1</docno>\n<text>a&#0;</text></doc>", "corpus, line 3: a NUL"),
    ("corpus", PACKED[: len(PACKED) // 2], "corpus, line "),
    ("corpus", bytes(DAMAGED), "corpus, line "),
    ("corpus", lines({"_id": "with space", "text": "x"}).encode(), 'corpus, line 1: "_id"'),
    ("corpus", lines({"_id": "", "text": "x"}).encode(), 'corpus, line 1: "_id"'),
    ("corpus", b'{"_id": "d1", "text": "\\ud800"}\n', "corpus, line 1: not JSON"),
    ("corpus", b'{"_id": "d1", "text": "x", "metadata": {"n": 1e999}}\n', 'corpus, line 1: "metadata" cannot'),
    ("corpus", b"<doc>\n<docno>1</docno>\n<text>x", "corpus, line 1: a <doc> that does not end"),
    ("corpus", b"words\nmore words\n", "corpus, line 1: neither JSON"),
    ("corpus", b"\n\n", "corpus: the file is empty"),
    ("queries", GOOD["queries"] + lines({"text": "Why?"}).encode(), 'queries, line 2: the field "_id" is missing'),
    ("queries", lines({"_id": "q1", "text": " "}).encode(), "queries, line 1: the query has no text"),
    ("queries", b'{"_id": "q1", "text": "Which?", "answers": [1]}\n', 'queries, line 1: "answers" is not a list'),
    ("qrels", b"q1 0 d1 1\nq1 0 d2\n", "qrels, line 2: 3 columns instead of 4"),
    ("qrels", b"query-id\tcorpus-id\tscore\nq1\td1\t1\textra\n", "qrels, line 2: 4 columns instead of 3"),
    ("qrels", b"q1 d1\n", "qrels, line 1: 2 columns"),
    ("qrels", b"q1 0 d1 1.5\n", "qrels, line 1: the grade is not an integer, nor yes or no"),
    ("qrels", b"q1 0 d1 1e1\n", "qrels, line 1: the grade is not an integer, nor yes or no"),
    (
        "pairs",
        lines(*({"query_id": "q1", "doc_id": "d1", "gold": n} for n in (1, 0))).encode(),
        "pairs, line 2: the pair is",
    ),
    ("runs", b"q1 Q0 d1 1 nan x\n", "runs, line 1: the score is not a number"),
    ("runs", b"q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.5 x\nq1 Q0 d1 3 1.0 x\n", 'runs, line 3: document "d1" is listed'),
]


@pytest.mark.parametrize(("part", "content", "said"), BAD, ids=range(len(BAD)))
def test_a_bad_file_gets_one_line_and_nothing_is_there(tmp_path, part, content, said):
    added = GOOD["corpus"] + content[1:] if content.startswith(b"+") else content
    arguments = ["small"]
    for name, data in {**GOOD, part: added}.items():
        (tmp_path / name).write_bytes(data)
        arguments += [f"--{name}", str(tmp_path / name)]
    assert refused(*arguments).replace(f"{tmp_path}/", "").startswith(said)


def refused(*arguments: str) -> str:
    report, said = import_files(*arguments)
    assert (report, said.count("\n")) == ({}, 1)
    assert not any(model.objects.exists() for model in (Collection, Document, Query, Pair, Assessor, Judgment))
    return said


def test_a_missing_file_and_a_name_that_no_address_could_hold(tmp_path):
    missing = refused("small", "--corpus=/none", "--queries=/none")
    assert missing.startswith("/none: ") and missing.endswith("no such file\n")
    (tmp_path / "corpus").write_bytes(GOOD["corpus"])
    assert "Not a name" in refused("Not a name", f"--corpus={tmp_path / 'corpus'}")
