"""What is wrong with files is said in the reader's language, also where a worker found it."""

import html
import re

import pytest
from django.utils.translation import override

from annotation.models import User
from corpus.formats import recognition
from tests.annotation.data.imports.test_imports import DOCUMENTS, PAIRS, QUERIES
from tests.imported_files import bring
from tests.stages import first_quick

pytestmark = pytest.mark.django_db

# What Chinese sentences keep in Latin letters: formats, programs, and names of fields and files.
KEPT = {
    "json", "xml", "qrels", "csv", "tsv", "parquet", "html", "lines", "docs", "importing", "md", "score", "excel",
    "label", "studio", "utf-8", "name", "gzip", "zip", "query-id", "corpus-id", "query", "corpus", "id", "trec", "nul",
}  # fmt: skip
QRELS = "query-id\tcorpus-id\tscore\n"
GOOD = {"documents.csv": DOCUMENTS, "queries.csv": QUERIES}
BAD: list[dict[str, str | bytes]] = [
    {"x.csv": "id,text,text\n1,x,y\n"},
    {"x.csv": b"PAR1\0\xff" * 9},
    {"x.csv": "just a line\n"},
    {"x.csv": "Frage,Antwort\nWarum?,Darum.\n"},
    {"x.html": "<!doctype html><html></html>"},
    {"x.xml": "<article>no</article>"},
    {"x.json": '[{"annotations": [], "data": {}, "project": 1}]'},
    {"x.jsonl": '{"name": "x"}\n'},
    {"x.jsonl": '{"_id": "d1", "text": "x"}\nnot json\n'},
    {"x.jsonl": '{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n'},
    {"x.jsonl": '{"_id": "d 1", "text": "x"}\n'},
    {"documents.csv": DOCUMENTS},
    {**GOOD, "pairs.csv": "qid,docid\nq1,d9\n"},
    {**GOOD, "pairs.csv": "qid,docid\nq1\n"},
    {**GOOD, "pairs.csv": 'qid,docid\n"q1,d1\n'},
    {**GOOD, "pairs.csv": "qid,docid,score\nq1,d1,high\n"},
    {**GOOD, "pairs.csv": PAIRS, "qrels.tsv": QRELS + "q1\td1\t9\n"},
    {**GOOD, "qrels.tsv": QRELS + "q1\td1\tmaybe\n"},
    {**GOOD, "qrels.csv": "qid,docid,grade\nq1,d1,yes\nq1,d2,2\n"},
    {**GOOD, "judged.csv": "qid,docid,annotator,grade\nq1,d9,alice,1\n"},
    {**GOOD, "judged.csv": "qid,docid,annotator,grade\nq1,d1,alice,1\nq1,d1,alice,0\n"},
    {"x.json": '[{"_id": "d1", "text": "x"},'},
    {"x.json": '[{"_id": "d1", "text": "x"}] more'},
    {**GOOD, "qrels.tsv": QRELS + "q1\td1\t1\nq1\td1\t0\n"},
    {**GOOD, "qrels.tsv": QRELS + "q1\td1\t1\n", "test.tsv": QRELS + "q1\td1\t0\n"},
    {**GOOD, "run.txt": "q1 Q0 d1 1 0.5 tag\nq1 Q0 d1 2 0.4 tag\n"},
    {"documents.csv": "id,text\nd1,\n", "queries.csv": QUERIES},
    {"documents.csv": "id,text\nd1,caf\xe9\n".encode("latin-1"), "queries.csv": QUERIES},
]


@pytest.fixture
def chinese(charlie):
    User.objects.update(language="zh-hans")
    return charlie


def english(said: str) -> set[str]:
    """The words of a sentence that are neither Chinese nor quoted nor names."""
    bare = re.sub(r"“[^”]*”|'[^']*'|<[^>]*>|\S*\.(?:csv|tsv|jsonl?|xml|html|zip|txt|md)\b", " ", said)
    return {word for word in re.findall(r"[A-Za-z][\w-]+", bare) if word.lower() not in KEPT}


@pytest.mark.parametrize("files", first_quick(BAD, 4), ids=range(len(BAD)))
def test_a_bad_file_is_refused_in_chinese(chinese, files):
    row = bring(chinese, "birds", files)
    page = html.unescape(chinese.get(f"/c/birds/import/{row.number}/").content.decode())
    problems = [one["holds"]["problem"] for one in row.files if one["holds"]["problem"]]
    assert row.state == "failed" and re.search(r"[\u4e00-\u9fff]", row.error), row.error
    for said in [row.error, *problems]:
        assert english(said) == set(), said
        assert said[1:] in page
    assert english(" ".join(re.findall(r'role="alert">(.*?)</p>', page))) == set()


def test_an_archive_that_cannot_be_opened_is_refused_in_chinese(chinese):
    row = bring(chinese, "birds", {"x.zip": b"PK\x03\x04 no"})
    assert row.error == "x.zip：zip 压缩包已损坏；请重新制作"


def test_every_known_format_has_chinese_words():
    formats = [known for _magic, known in (*recognition._BINARY, *recognition._ZIPPED, *recognition._TEXT)]
    with override("zh-hans"):
        said = {known: str(known) for known in formats}
    assert {one for one in said.values() if not re.match(r"这是.+，此处不能读取：.*[\u4e00-\u9fff]", one)} == set()
