"""Why is kappa low? The pairs on which two assessors differ, with grades, comments and seconds, query by query."""

import pytest

from annotation.models import Role
from corpus.models import Assessor, Judgment
from tests.factories import make_collection, make_member, make_pair, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def books(client):
    """Alice finds twice as many pairs relevant as Bob; three queries with two pairs each."""
    collection = make_collection("books", grades=3, relevant_from=2)
    queries = [make_query(collection, f"query {n}") for n in range(3)]
    people = [Assessor.objects.create(collection=collection, kind="person", name=name) for name in ("alice", "bob")]
    for place, grades in enumerate([(2, 0), (3, 3), (2, 1), (2, 2), (0, 1), (0, 0)]):
        pair = make_pair(collection, query=queries[2 - place // 2])
        for who, grade in zip(people, grades, strict=True):
            Judgment.objects.create(
                pair=pair, assessor=who, grade=grade, step="first", comment=f"{who.name} {place}", milliseconds=7000
            )
    client.force_login(make_member(collection, "charlie", Role.ADMIN).user)
    return collection


def test_pairs_on_which_two_differ_stand_by_query_with_grades_comments_and_seconds(books, client):
    page = client.get("/c/books/agreement/two/?a=alice&b=bob&cell=disagree")
    found = page.context["two"]["list"]
    assert found["total"] == 3
    assert [(group["count"], group["total"]) for group in found["groups"]] == [(1, 2), (1, 2), (1, 2)]
    assert [group["query"] for group in found["groups"]] == sorted(group["query"] for group in found["groups"])
    answers = [row["answers"] for group in found["groups"] for row in group["rows"]]
    said = [[(one["grade"], one["comment"], one["seconds"]) for one in both] for both in answers]
    assert [(2, "alice 0", 7.0), (0, "bob 0", 7.0)] in said
    assert "2 relevant" in page.text and "0 not relevant" in page.text and "7 s" in page.text

    way = page.context["two"]["direction"]
    assert (way["relevant"], way["higher"], way["seldom"], way["ratio"]) == ([4, 2], [2, 1], "bob", 0.5)
    above = client.get(f"/c/books/agreement/two/?{page.context['two']['above']}")
    assert above.context["two"]["list"]["total"] == 2
    assert client.get("/c/books/agreement/two/?a=alice&b=bob&cell=below").context["two"]["list"]["total"] == 1


def test_a_couples_kappa_has_the_interval_of_the_quality_page(books, client):
    report = client.get("/c/books/quality/").context["report"]
    two = client.get("/c/books/agreement/two/?a=bob&b=alice&cell=disagree").context["two"]
    assert dict(two["measures"])["Cohen's kappa"] == report.measures.pairwise[0].kappa
    assert len(two["measures"]) == 4
    two = client.get("/c/books/agreement/two/?a=bob&b=alice&cell=disagree:1").context["two"]
    assert len(two["measures"]) == 2, "of two grades every weighting gives the same kappa"
