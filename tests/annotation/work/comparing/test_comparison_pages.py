"""The pages of comparisons without scripts: an admin's sets, and an annotator who compares blind."""

import re

import pytest
from django.test import Client

from annotation.models import Membership, Role
from annotation.models.comparisons import Comparison, ComparisonSet, Preference
from annotation.work.comparing import services
from corpus.models import Collection
from tests.comparing_scene import SHELL, draw, make_relevant, prefer
from tests.factories import client_of, make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(collection: Collection) -> Client:
    return client_of(make_member(collection, "ada", Role.ADMIN))


def fields(text: str) -> dict[str, str]:
    """The hidden fields of the answer."""
    return dict(re.findall(r'name="(set|comparison)" value="(\d+)"', text))


def test_a_set_is_drawn_after_its_estimate_was_shown(collection: Collection, admin: Client) -> None:
    form = {"documents": "relevant", "per_query": 6, "opponents": 2, "people": 1, "seed": 0}
    refused = admin.post("/c/books/comparisons/", form | {"confirm": "1"})
    assert refused.status_code == 422 and "No query has two such documents" in refused.text
    make_relevant(collection, queries=2, documents=3)
    estimate = admin.post("/c/books/comparisons/", form)
    assert "6 documents of" in " ".join(estimate.text.split()) and not ComparisonSet.objects.exists()
    drawn = admin.post("/c/books/comparisons/", form | {"confirm": "1"})
    assert drawn["Location"] == "/c/books/comparisons/1/"
    assert admin.get(drawn["Location"]).status_code == admin.get("/c/books/comparisons/").status_code == 200


def test_comparing_works_without_scripts_and_reading_claims_nothing(collection: Collection, alice: Membership) -> None:
    make_relevant(collection)
    draw(collection)
    client = client_of(alice)
    assert "Start comparing" in client.get("/c/books/compare/").text
    assert Comparison.objects.filter(taken__gt=0).count() == 0
    client.post("/c/books/compare/next/")
    for number in range(3):
        page = client.get("/c/books/compare/").text
        assert f'<strong id="answered">{number}</strong> of <span id="total">3</span>' in page
        assert client.post("/c/books/compare/answer/", fields(page) | {"answer": "left"}).status_code == 303
    client.post("/c/books/compare/undo/")
    page = client.get("/c/books/compare/").text
    client.post("/c/books/compare/answer/", fields(page) | {"answer": "both_bad"})
    assert "You answered 3 comparisons" in " ".join(client.get("/c/books/compare/").text.split())
    assert Preference.objects.count() == 5


def test_a_form_that_is_not_the_pages_stores_nothing(collection: Collection, alice: Membership) -> None:
    make_relevant(collection)
    draw(collection)
    services.claim(alice)
    address = {"set": "1", "comparison": "1"}
    for data in ({}, {"answer": "left"}, address | {"answer": "first"}, address | {"set": "x"}):
        assert client_of(alice).post("/c/books/compare/answer/", data).status_code == 422
    assert not Preference.objects.exists()


def test_an_annotator_sees_no_vote_no_grade_and_no_name_of_a_document_and_markup_as_text(collection, alice, bob):
    make_relevant(collection, text="<script>window.hacked = true</script>")
    drawn = draw(collection, people=2)
    for row in drawn.comparisons.all():
        prefer(row, bob.assessor, "first")
    services.claim(alice)
    main = client_of(alice).get("/c/books/compare/").text.split('id="cards"')[1].split("</form>")[0]
    assert main.count("&lt;script&gt;window.hacked") == 4 and "<script>window" not in main
    assert not re.search(r"bob|relevant|first|preferred|strength", re.sub(r"hx-[a-z]+", "", main))


def test_the_menu_has_compare_while_there_are_comparisons_for_people(collection: Collection, alice: Membership) -> None:
    def has_entry() -> bool:
        entries = client_of(alice).get("/c/books/judge/history/").context["navigation"]["entries"]
        return "compare" in {entry["key"] for entry in entries}

    make_relevant(collection)
    assert not has_entry()
    drawn = draw(collection)
    assert has_entry()
    services.end_set(SHELL, drawn)
    assert not has_entry()
    Collection.objects.update(consent_version=1)
    assert client_of(alice).get("/c/books/compare/")["Location"] == "/c/books/judge/", "consent comes first"


def test_results_show_agreement_sides_and_strengths_with_downloads(collection, admin, alice, bob):
    make_relevant(collection)
    drawn = draw(collection, people=2)
    for row in drawn.comparisons.all():
        prefer(row, alice.assessor, "first")
        prefer(row, bob.assessor, "second")
    response = admin.get("/c/books/comparisons/1/")
    (figures,) = response.context["figures"]
    assert (figures["agreement"].value, figures["left"].value) == (0.0, 0.5)
    ((query, chart),) = response.context["queries"]
    assert len(query.documents) == 3
    table = admin.get(f"/c/books/comparisons/1/?chart={chart.key}&as=csv").text
    assert table.count("\n") == 4 and "d0-0" in table


def test_acts_on_a_set_are_confirmed_on_its_page(collection: Collection, admin: Client) -> None:
    make_relevant(collection)
    draw(collection)
    home = "/c/books/comparisons/"
    assert admin.post(f"{home}1/burn/").status_code == 404
    for act in ("pause", "resume", "end", "delete"):
        form = admin.get(f"{home}1/").text.split(f"/comparisons/1/{act}/")[0].rpartition("<")[0][-400:]
        assert act == "resume" or 'class="confirm"' in form
        assert admin.get(f"{home}1/{act}/").status_code == 405
        assert admin.post(f"{home}1/{act}/")["Location"] == (home if act == "delete" else f"{home}1/")
