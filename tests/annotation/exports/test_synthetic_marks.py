"""Queries that a model wrote: marked in every format, counted, and kept out of dev and of qrels."""

import json

import pytest

from annotation.data.statistics import statistics_of
from benchmark.qrels import versions
from corpus.models import Query
from tests.judged_books import export, lines, make_books


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
