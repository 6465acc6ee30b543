"""Ratings of search tools as grades: what fits the scale, and what is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.exports.ratings.scales import describe_ratings
from corpus.models import Collection, Judgment, Query
from tests.factories import make_collection, make_document, make_query
from tests.imported_files import import_files

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Collection:
    shop = make_collection("shop", grades=3)
    make_query(shop, "what is tea", external_id="q1", answers=["a drink"])
    for name in "abcd":
        make_document(shop, f"Text {name}.", external_id=name)
    return shop


def judgments(*ratings: Any, query: str = "what is tea", description: str = "") -> dict[str, Any]:
    """A body of the Search Relevance Workbench with ratings of the documents a, b, c, d."""
    rated = [{"docId": name, "rating": rating} for name, rating in zip("abcd", ratings, strict=False)]
    return {"name": "x", "description": description, "type": "IMPORT_JUDGMENT",
            "judgmentRatings": [{"query": query, "ratings": rated}]}  # fmt: skip


def read(folder: Path, body: dict[str, Any]) -> tuple[dict[str, int], str]:
    """Import a body: the grades of query q1 by document, and what is said."""
    (folder / "m.json").write_text(json.dumps(body, indent=1))
    _report, said = import_files("shop", folder / "m.json")
    rows = Judgment.objects.filter(pair__query__external_id="q1")
    return {row.pair.document.external_id: row.grade for row in rows}, said


@pytest.mark.parametrize(
    ("ratings", "grades"),
    [
        (("0.0", "0.333", "0.667", "1.0"), [0, 1, 2, 3]),
        ((0, 0.33, 0.67, 1), [0, 1, 2, 3]),
        (("0.000", "1.000"), [0, 3]),
        (("3.000", "2.000", "0.000", "1.000"), [3, 2, 0, 1]),
        ((0.0001,), [0]),
        ((1e-3, "1e-3"), [0, 0]),
    ],
)
def test_ratings_from_0_to_1_are_shares_of_the_scale_and_whole_numbers_grades(shop, tmp_path, ratings, grades):
    found, said = read(tmp_path, judgments(*ratings))
    assert [found[name] for name in sorted(found)] == grades, said
    assert Query.objects.count() == 1, "the query is the collection's, by its text"


@pytest.mark.parametrize(
    ("ratings", "words"),
    [
        (("0.0", "0.4"), "b: the rating 0.4 fits no grade"),
        ((0.5,), "a: the rating 0.5 fits no grade"),
        (("0.0", "2.5", "3"), "b: the grade is not an integer"),
        (("0", "4"), "b: grade 4 is above"),
        (("high",), "a: the grade is not an integer"),
        ((-0.5,), "a: the grade is not an integer"),
        (("nan",), "a: the grade is not an integer"),
        ((10**400,), "a: the grade is not an integer"),
    ],
)
def test_a_rating_that_fits_no_grade_is_refused_with_its_query_and_document(shop, tmp_path, ratings, words):
    found, said = read(tmp_path, judgments(*ratings))
    assert not found and "m.json, line 1: " in said and f'"what is tea", {words}' in said


def test_a_rating_that_our_own_scale_does_not_have_is_refused(shop, tmp_path):
    description = "Labels of shop; rating of each grade: 0=0.0, 1=0.1, 2=0.5, 3=0.5"
    found, said = read(tmp_path, judgments("0.1", "0.5", description=description))
    assert found == {"a": 1, "b": 2}, said
    _found, said = read(tmp_path, judgments("0.2", description=description))
    assert "the rating 0.2 fits no grade of the scale 0=0.0, 1=0.1, 2=0.5, 3=0.5" in said


def test_a_scale_with_a_small_rating_is_read_back(shop, tmp_path):
    ratings = {0: 0.0, 1: 0.00001, 2: 0.5, 3: 1.0}
    description = f"rating of each grade: {describe_ratings(ratings)}"
    found, said = read(tmp_path, judgments("0.00001", "1e-05", "1.0", description=description))
    assert found == {"a": 1, "b": 1, "c": 3}, said


@pytest.mark.parametrize("scale", ["0=., 1=1", "0=0.0, 1=1.0.0", "0=01=1", "1=" + "111=" * 60 + "x"])
def test_a_scale_in_other_words_is_none(shop, tmp_path, scale):
    found, said = read(tmp_path, judgments("0.0", "1.0", description=f"rating of each grade: {scale}"))
    assert found == {"a": 0, "b": 3}, said


def test_the_workbenchs_own_answer_is_read(shop, tmp_path):
    # https://docs.opensearch.org/3.9/search-plugins/search-relevance/judgments/, "View a judgment list".
    source = {"id": "b54f", "timestamp": "2025-06-11T06:07:23.766Z", "status": "COMPLETED", **judgments("3.000")}
    hit = {"_index": "search-relevance-judgment", "_id": "b54f", "_score": 1, "_source": source}
    answer = {"took": 36, "timed_out": False, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit]}}
    assert read(tmp_path, answer)[0] == {"a": 3}


def test_rank_eval_is_read_with_and_without_the_texts_of_its_queries(shop, tmp_path):
    rated = [{"_index": "i", "_id": "a", "rating": 3}, {"_index": "i", "_id": "b", "rating": 0}]
    request = {"id": "q1", "request": {"query": {"match": {"text": "what is tea"}}}, "ratings": rated}
    assert read(tmp_path, {"requests": [request], "metric": {"dcg": {}}})[0] == {"a": 3, "b": 0}
    request = {"id": "q1", "template_id": "t", "params": {"query_string": "what is tea"}, "ratings": rated[:1]}
    other = {"id": "q2", "template_id": "t", "params": {"query_string": "what is coffee"}, "ratings": rated}
    found, said = read(tmp_path, {"requests": [request, other]})
    assert found == {"a": 3, "b": 0}, said
    assert set(Query.objects.values_list("external_id", "text")) == {("q1", "what is tea"), ("q2", "what is coffee")}
    wrong = {"id": "q1", "ratings": [{"_index": "i", "_id": "c", "rating": 1.5}]}
    assert '"q1", c: the grade is not an integer' in read(tmp_path, {"requests": [wrong]})[1]


def test_a_text_that_several_queries_have_is_refused(shop, tmp_path):
    make_query(shop, "what is tea", external_id="q7")
    found, said = read(tmp_path, judgments("1.0"))
    assert not found and "q1, q7" in said
