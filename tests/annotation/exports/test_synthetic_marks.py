"""Queries that a model wrote: marked in every format, counted, and kept out of dev and of qrels."""

import json
from collections import Counter

import pytest

from annotation.data.statistics import statistics_of
from annotation.exports.sets.rows import SetQuery, SetRow
from annotation.exports.sets.splitting import split_queries
from benchmark.qrels import versions
from corpus.models import Query
from tests.judged_books import export, lines, make_books


def query(number, *, synthetic=False, seed=""):
    row = SetRow("books", f"q{number}", f"d{number}", number, number, number, 1, "people", True)
    return SetQuery("books", f"q{number}", number, [row], synthetic, seed)


def split(queries, groups=None, **options):
    left = Counter()
    sides = split_queries(queries, 0.5, 0, groups=groups or {}, documents={}, left=left, **options)
    return {side: {one.id for one in found} for side, found in sides.items()}, left


def test_a_synthetic_query_never_enters_dev_unless_asked():
    real, written = [query(n) for n in range(10)], [query(n, synthetic=True) for n in range(10, 30)]
    sides, left = split(real + written)
    assert (len(sides["train"]), len(sides["dev"])) == (25, 5) and not left
    assert sides["dev"] == split(real)[0]["dev"]
    asked, _ = split(real + written, synthetic_dev=True)
    assert len(asked["dev"] & {one.id for one in written}) > 0 and len(asked["dev"]) == 15


def test_a_synthetic_query_whose_seed_or_near_duplicate_is_in_dev_is_left_out_and_counted():
    real = [query(n) for n in range(10)]
    dev = split(real)[0]["dev"]
    written = [query(10 + n, synthetic=True, seed=f"q{n}") for n in range(10)]
    sides, left = split(real + written)
    assert sides["dev"] == dev
    assert {f"q{10 + n}" for n in range(10) if f"q{n}" not in dev} == sides["train"] & {one.id for one in written}
    assert left.total() == len(dev)
    alike, left = split([*real, query(40, synthetic=True)], groups={40: 1, int(min(dev)[1:]): 1})
    assert "q40" not in alike["train"] | alike["dev"] and left.total() == 1
    asked, _ = split(real + written, synthetic_dev=True)
    for side in asked.values():
        assert all((f"q{n}" in side) == (f"q{10 + n}" in side) for n in range(10))


@pytest.fixture
def books():
    books = make_books()
    Query.objects.filter(collection=books, external_id="q0").update(metadata={"synthetic": True})
    Query.objects.filter(collection=books, external_id="q1").update(metadata={"rewritten_from": "q2"})
    return books


@pytest.mark.django_db
def test_every_row_of_an_export_says_that_a_model_wrote_its_query(books, tmp_path):
    for name, options in (("prism", {"teacher": "labels"}), ("rtriever", {})):
        manifest = export(books, name, tmp_path / name, split=1, **options)
        rows = lines(tmp_path / name / "train.jsonl")
        assert {row["query_id"] for row in rows if row["synthetic"]} == {"q0"}
        assert manifest["counts"]["synthetic_queries"] == 1
    for name in ("flagembedding", "sentence-transformers", "tevatron"):
        manifest = export(books, name, tmp_path / name, split=1)
        rows = lines(tmp_path / name / "train.jsonl")
        marks = lines(tmp_path / name / "synthetic.jsonl")
        marked = [json.dumps(rows[mark["line"] - 1]) for mark in marks]
        assert marked == [json.dumps(row) for row in rows if "thing 0 number0" in json.dumps(row)]
        assert all(mark["file"] == "train.jsonl" for mark in marks) and manifest["counts"]["synthetic_queries"] == 1
    export(books, "beir", tmp_path / "beir", split=1)
    known = {row["_id"]: row.get("metadata") for row in lines(tmp_path / "beir" / "queries.jsonl")}
    assert known["q0"] == {"synthetic": True} and known["q3"] is None


@pytest.mark.django_db
def test_the_statistics_page_counts_keyword_and_synthetic_queries(books):
    found = statistics_of(books)
    assert (found["queries_synthetic"], found["queries_keywords"]) == (1, 1)


@pytest.mark.django_db
def test_qrels_of_all_labels_hold_no_synthetic_query(books):
    made = versions.labels_version(books)
    kept = set(made.rows.values_list("query__external_id", flat=True))
    assert "q0" not in kept and "q3" in kept
