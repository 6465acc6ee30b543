"""Runs come in whole or not at all; what is wrong with a file is told by its lines (issue 6, check 10)."""

import gzip
import json
import re
from pathlib import Path

import pytest

from annotation.models import AuditEntry
from benchmark.measures.rankings import evaluate_run, rank_documents
from benchmark.models import Ranking, Run
from benchmark.runs import rankings
from benchmark.runs.files import RunFile, read_qrels, read_run
from benchmark.runs.importing import import_runs, name_of
from corpus.errors import BadInput
from corpus.models import Document
from tests.called import call
from tests.factories import make_collection, make_query
from tests.rankings import make_texts

pytestmark = pytest.mark.django_db
TREC_EVAL = Path(__file__).parents[4] / "shared" / "data" / "trec_eval"
GOOD = "q1 Q0 a 1 2.5 tag\nq1 Q0 b 2 2.0 tag\nq2 Q0 c 1 1.0 tag\n"


@pytest.fixture
def books():
    return make_texts("books", {name: f"text {name}" for name in "abcd"}, {name: name for name in ("q1", "q2", "q3")})


@pytest.fixture
def write(tmp_path):
    def write(text, name="one.run"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_run_comes_in_with_its_scores_and_says_what_is_missing(books, write):
    said = call("import_runs", "books", write(GOOD), "--json")
    counts = {"queries": 2, "lines": 3, "missing_queries": 1, "depth": 2, "name": "one", "excluded": 0}
    assert json.loads(said.out)["runs"] == [{**counts, "unknown_queries": 0, "unknown_documents": 0}]
    run = Run.objects.get()
    assert (run.kind, run.state, run.depth, run.done, run.total) == ("imported", "ready", 2, 2, 3)
    assert rankings.as_run(run) == {"q1": {"a": 2.5, "b": 2.0}, "q2": {"c": 1.0}}
    assert "one: 3 lines" in said.err and "1 queries missing" in said.err
    assert AuditEntry.objects.get(act="runs.imported", collection=books).details["runs"] == ["one"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("q1 Q0 a 2 1.0 tag", 'line 4: document "a" is listed twice for query "q1" (line 1)'),
        ("q1 Q0 d 2 nan tag", "line 4: the score is not a number: 'nan'"),
        ("q1 Q0 d 2 1_0 tag", "line 4: the score is not a number: '1_0'"),
        ("q1 Q0 d 2 best tag", "line 4: the score is not a number: 'best'"),
        ("q1 Q0 d 2 -1e39 tag", "line 4: the score is infinite: '-1e39'"),
        ("q1 Q0 d\u00a0d 2 1.0 tag", "line 4: 7 columns instead of the 6 of a run (an id or a tag with white"),
        ("q9 Q0 d 1 1.0 tag", 'line 4: no query has the id "q9"'),
        (f"q1 Q0 {'x' * 256} 1 1.0 tag", "line 4: an id is longer than 255 characters"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_nothing_is_written(books, write, line, problem):
    good = write(GOOD, "good.run")
    bad = write(GOOD + line + "\n", "bad.run")
    said = call("import_runs", "books", good, bad, "--json")
    assert (said.code, said.out) == (2, "")
    assert f"{bad}: {problem}" in said.err
    assert said.err.count("\n") == 1
    assert not Run.objects.exists() and not Ranking.objects.exists()
    assert not AuditEntry.objects.filter(act="runs.imported").exists()


def test_every_file_tells_what_is_wrong_with_it_to_twenty_lines(books, write):
    """Line 2 of the other repeats line 1 and both name an unknown document: two lines, not three."""
    one, other = write("q1 Q0 a 1 nan t\n", "one"), write("q1 Q0 x 1 2 t\nq1 Q0 x 2 1 t\n", "other")
    with pytest.raises(BadInput) as error:
        import_runs(books, {"one": one, "other": other})
    assert f"{one}: line 1: " in str(error.value) and f"{other}: line 1: " in str(error.value)
    assert str(error.value).count("line 2: ") == 1
    bad = "".join(f"q1 Q0 a 1 nan line{number}\n" for number in range(1, 24))
    with pytest.raises(BadInput) as error:
        import_runs(books, {"one": write(bad + "q9 Q0 a 1 1 tag\n" + GOOD + "q1 Q0 a 1 1 tag\n")})
    told = str(error.value)
    assert len(re.findall(r"line \d+: ", told)) == 20 and "line 21" not in told
    assert "5 more (25 lines" in told


def test_what_is_excluded_or_unknown_is_left_out_and_counted(books, write):
    text = GOOD + "q9 Q0 a 1 1 t\nq9 Q0 x 2 1 t\nq2 Q0 x 2 0.5 t\n"
    ((run, told),) = import_runs(books, {"one": write(text)}, skip_unknown=True)
    assert (told["lines"], told["unknown_queries"], told["unknown_documents"]) == (3, 2, 1)
    assert rankings.as_run(run) == {"q1": {"a": 2.5, "b": 2.0}, "q2": {"c": 1.0}}
    with pytest.raises(BadInput, match=r"no line .* books"):
        import_runs(books, {"two": write("q9 Q0 x 1 1 t\n")}, skip_unknown=True)
    make_query(books, "query q4", external_id="q4", metadata={"excluded_ids": ["a"]})
    ((run, told),) = import_runs(books, {"four": write("q4 Q0 a 1 2 t\nq4 Q0 b 2 1 t\n")})
    assert (told["lines"], told["excluded"], rankings.as_run(run)) == (1, 1, {"q4": {"b": 1.0}})


def test_gzip_is_known_by_its_content_lines_may_end_as_they_like_and_no_lines_are_no_run(books, write):
    text = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode() + b"\n  \n"
    ((run, told),) = import_runs(books, {"one": write(gzip.compress(text), "one.txt")})
    assert told["lines"] == 3
    assert read_run(write("".join(rankings.write_trec(run)), "again")) == read_run(write(GOOD)), (
        "it comes out as it was"
    )
    for text, problem in (("\n \n", "contains no lines"), ("q1\0", "NUL")):
        with pytest.raises(BadInput, match=problem):
            import_runs(books, {"two": write(text)})


def test_a_run_is_named_after_its_file_and_a_name_that_exists_is_refused_before_the_file_is_read(books, write):
    names = [name_of(write("", name)) for name in ("a.run.gz", "bm25.k1=0.9.txt", "plain", ".gz")]
    assert names == ["a", "bm25.k1=0.9", "plain", ".gz"]
    said = call("import_runs", "books", write(GOOD), f"other={write(GOOD)}", "--json")
    assert [one["name"] for one in said.json["runs"]] == ["one", "other"]
    said = call("import_runs", "books", write("not a run", "one.txt"))
    assert said.code == 2 and "already has a run" in said.err
    said = call("import_runs", "books", write(GOOD, "x.run"), write(GOOD, "x.txt"))
    assert said.code == 2 and "would be called x" in said.err
    assert Run.objects.count() == 2


def test_the_same_reader_serves_evaluate_and_orders_ties_as_trec_eval(write):
    path = write("q1 Q0 a 1 1 t\nq1 Q0 c 2 1 t\nq1 Q0 b 3 2 t\n")
    assert list(read_run(path)["q1"].items()) == [("b", 2.0), ("c", 1.0), ("a", 1.0)]
    file = RunFile(path)
    assert (file.lines, file.tag, file.documents) == (3, "t", ["a", "c", "b"])


@pytest.mark.skipif(not TREC_EVAL.exists(), reason="trec_eval's fixtures are not beside the project")
@pytest.mark.parametrize(("name", "missing"), [("results.test", 0), ("results.trunc", 1)])
def test_trec_evals_own_runs_are_measured_the_same_from_the_file_and_from_the_database(write, name, missing):
    """Ties and a missing query; the second file has words behind its lines, which are cut off."""
    lines = [line.split()[:6] for line in (TREC_EVAL / name).read_text().splitlines()]
    path = write("".join(" ".join(columns) + "\n" for columns in lines))
    qrels, read = read_qrels(TREC_EVAL / "qrels.test"), read_run(path)
    collection = make_collection("trec")
    for query in qrels:
        make_query(collection, f"query {query}", external_id=query)
    texts = {document for documents in read.values() for document in documents}
    Document.objects.bulk_create(
        Document(collection=collection, external_id=one, text=one, content_hash=one) for one in texts
    )
    ((run, told),) = import_runs(collection, {"one": path})
    assert told["missing_queries"] == missing
    measures = ["nDCG@10", "RR", "P@100", "R@1000", "AP"]
    from_file, stored = evaluate_run(qrels, read, measures), evaluate_run(qrels, rankings.as_run(run), measures)
    assert stored.per_query == from_file.per_query and len(stored.missing) == missing
    order = {query: rank_documents(documents) for query, documents in read.items()}
    names = dict(Document.objects.values_list("pk", "external_id"))
    queries = dict(collection.query_set.values_list("pk", "external_id"))
    loaded = rankings.load([run.pk])[run.pk]
    assert {queries[query]: [names[key] for key in keys.tolist()] for query, keys in loaded.items()} == order
