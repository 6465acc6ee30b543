"""Bad input is refused with exit 2 and one line and leaves nothing; what published sets have twice is left out."""

import gzip
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmark.models import Ranking, Run
from benchmark.runs import builders
from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query
from jobs import leases
from tests.called import call
from tests.corpus.importing.file_contents import lines
from tests.imported_files import import_files
from tests.rankings import start_run

pytestmark = pytest.mark.django_db

TWO = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "title": "", "text": "Second."}]


GOOD = {"corpus": lines(*TWO).encode(), "queries": lines({"_id": "q1", "text": "Which?"}).encode()}
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


DOCUMENTS = [{"_id": f"d{n}", "text": f"Text of {n} about tea."} for n in range(3)]
QUERIES = [{"_id": "q1", "text": "Which tea?"}, {"_id": "q2", "text": "Whose tea?"}]
QRELS = "q1 0 d0 1\nq1 0 d1 0\nq2 0 d2 2\n"
RUN = "q1 Q0 d0 1 3.5 x\nq1 Q0 d1 2 2.5 x\nq2 Q0 d2 1 1.5 x\n"
PAIRS = "query_id,doc_id\nq1,d0\nq1,d1\nq2,d2\n"
JUDGMENTS = "query_id,doc_id,grade,assessor\nq1,d0,1,Ann\nq2,d2,2,Ann\n"


def bring(folder: Path, *options: str, name: str = "tea", **files: str) -> tuple[dict[str, Any], str]:
    """Import files by their parts."""
    parts = {"corpus": lines(*DOCUMENTS), "queries": lines(*QUERIES), **files}
    for part, text in parts.items():
        (folder / part).write_text(text)
    return import_files(name, *options, *(f"--{part}={folder / part}" for part in parts))


@pytest.mark.parametrize(
    ("part", "text", "what", "repeats"),
    [
        ("corpus", lines(*DOCUMENTS, *DOCUMENTS[:2]), "documents", 2),
        ("queries", lines(*QUERIES, QUERIES[0]), "queries", 1),
        ("qrels", QRELS + QRELS, "judgments", 3),
        ("qrels", "q1 0 d0 -1\nq1 0 d0 -1\nq1 0 d1 1\n", "judgments", 1),
        ("pairs", PAIRS + "q1,d1\n", "pairs", 1),
        ("judgments", JUDGMENTS + "q1,d0,1,Ann\n", "judgments", 1),
    ],
)
def test_a_row_that_repeats_another_counts_once_and_is_counted(tmp_path, part, text, what, repeats):
    for update in ([], ["--update"]):  # into an empty collection, and into one that has it all
        report, said = bring(tmp_path, *update, **{"qrels": QRELS, part: text} if part != "judgments" else {part: text})
        assert report, said
        assert report["repeated"] == {**{one: 0 for one in report["repeated"]}, what: repeats}
    assert (report["documents"], report["queries"]) == (3, 2)
    assert report["changed"] is False


@pytest.mark.parametrize(
    ("part", "text", "said"),
    [
        ("corpus", lines(*DOCUMENTS, {"_id": "d1", "text": "Other."}), 'line 4: the id "d1" is already in line 2'),
        ("queries", lines(*QUERIES, {"_id": "q1", "text": "Other?"}), 'line 3: the id "q1" is already in line 1'),
        ("qrels", QRELS + "q1 0 d0 2\n", "line 4: the pair is already in line 1, with another grade"),
        ("judgments", JUDGMENTS + "q1,d0,2,Ann\n", "line 4: grade 2, but line 2 has 1"),
    ],
)
def test_a_row_that_says_something_else_is_refused(tmp_path, part, text, said):
    report, refusal = bring(tmp_path, **{part: text})
    assert not report and said in refusal and not Document.objects.exists()


@pytest.mark.parametrize(
    ("part", "text", "count", "first"),
    [
        ("qrels", QRELS + "q1 0 d9 1\nq9 0 d0 1\n", 2, 'line 4: no document has the id "d9"'),
        ("pairs", PAIRS + "q9,d1\n", 1, 'line 5: no query has the id "q9"'),
        ("runs", RUN + "q1 Q0 gone 3 0.5 x\n", 1, 'line 4: no document has the id "gone"'),
        ("judgments", JUDGMENTS + "q9,d0,1,Ann\n", 1, 'line 4: no query has the id "q9"'),
    ],
)
def test_rows_with_unknown_ids_are_left_out_where_it_is_asked_for(tmp_path, part, text, count, first):
    report, refusal = bring(tmp_path, **{part: text})
    assert not report and first in refusal and "(--skip-unknown)" in refusal
    report, _said = bring(tmp_path, "--skip-unknown", **{part: text})
    assert report["unknown"] == count and str(report["unknown_first"][0]).endswith(first)
    assert Pair.objects.filter(is_candidate=True).count() == (2 if part == "judgments" else 3)


def test_only_the_first_unknown_rows_are_named_and_a_grade_above_the_scale_names_what_to_change(tmp_path):
    _report, said = bring(tmp_path, qrels=QRELS + "q2 0 d1 4\n")
    assert "line 4: grade 4 " in said and "scale to 4" in said
    report, _said = bring(tmp_path, "--grades", "4", qrels=QRELS + "q2 0 d1 4\n")
    assert report["judgments"] == 4
    qrels = QRELS + "".join(f"q1 0 gone{n} 1\n" for n in range(50))
    report, _said = bring(tmp_path, "--skip-unknown", name="other", qrels=qrels)
    assert report["unknown"] == 50 and len(report["unknown_first"]) == 5 and report["judgments"] == 3


ARGUMENTS = [
    {"_id": "a1", "title": "health", "text": "Being vegetarian helps the environment."},
    {"_id": "a2", "title": "", "text": "Meat is part of  our diet."},
    {"_id": "a3", "title": "", "text": "Vegetarian diet and the environment."},
    {"_id": "1", "title": "", "text": "The environment and our diet."},
]
ASKED = [
    {"_id": "a1", "text": "health Being vegetarian helps the environment."},
    {"_id": "a2", "text": "meat is part of our diet."},
    {"_id": "1", "text": "Which diet?"},  # the same number, and another text
]
SELVES = {("a1", "a1"), ("a2", "a2")}


def made(run: Run) -> Run:
    with mock.patch.object(leases, "PROGRESS_S", 600):  # The test's rows are not committed.
        builders.RUNS.perform(leases.claim(Run, pk=run.pk), lambda: False)
    run.refresh_from_db()
    assert run.state == "ready", run.error
    return run


def named_pairs() -> set[tuple[str, str]]:
    rows = Pair.objects.filter(is_candidate=True).values_list("query__external_id", "document__external_id")
    return {(query, document) for query, document in rows if query == document}


@pytest.mark.parametrize("source", ["bm25", "runs"])
def test_a_query_that_is_a_document_is_no_candidate_of_itself(tmp_path, source):
    files = {"corpus": lines(*ARGUMENTS), "queries": lines(*ASKED)}
    options = ["--bm25", "2"] if source == "bm25" else []
    if source == "runs":
        rows = (f"{q['_id']} Q0 {d['_id']} 1 {9 - n} x\n" for q in ASKED for n, d in enumerate(ARGUMENTS))
        files["runs"] = "".join(rows)
    report, said = bring(tmp_path, *options, **files)
    assert report["own_document"] == 2, said
    assert named_pairs() == {("1", "1")} & named_pairs() and Pair.objects.filter(query__external_id="a1").count() >= 2
    report, _said = bring(tmp_path, *options, "--keep-self", name="kept", **files)
    assert report["own_document"] == 0 and named_pairs() | {("1", "1")} > SELVES


def test_a_query_that_is_a_document_is_left_out_of_its_own_ranking(tmp_path):
    bring(tmp_path, corpus=lines(*ARGUMENTS), queries=lines(*ASKED))
    collection = Query.objects.first().collection  # type: ignore[union-attr]

    def ranked(run: Run) -> set[tuple[str, str]]:
        names = dict(Document.objects.values_list("pk", "external_id"))
        rows = Ranking.objects.filter(run=run).select_related("query")
        return {(row.query.external_id, names[key]) for row in rows for key in row.documents}

    plain = made(start_run(collection, name="plain", depth=3))
    kept = made(start_run(collection, name="kept", keep_self=True, depth=3))
    assert not SELVES & ranked(plain) and ("1", "1") in ranked(plain) and ranked(kept) >= SELVES
    (tmp_path / "x.run").write_text(
        "".join(f"{q['_id']} Q0 {q['_id']} 1 1.0 x\n{q['_id']} Q0 a3 2 0.5 x\n" for q in ASKED)
    )
    assert call("import_runs", "tea", tmp_path / "x.run", "--json").json["runs"][0]["excluded"] == 2
    assert ranked(Run.objects.get(name="x")) == {("a1", "a3"), ("a2", "a3"), ("1", "1"), ("1", "a3")}
