"""Editing contribution and evidence on the judging page: plain forms, HTMX, undo, lost leases, programs that grade."""

from typing import Any

import pytest
from django.test import Client

from annotation.models import Assignment, Role
from corpus.collections.task_order import LAST
from corpus.evidence.targets import newest_targets
from corpus.models import Collection, Item, Judgment, Label, Pair, Target
from judges.campaigns import selectors
from judges.costs import counters
from judges.models import Campaign
from tests.annotation.work.judging.test_judging_pages import HTMX, claim, signed_in
from tests.factories import make_document, make_item, make_member, make_pair, make_query
from tests.judging_scene import make_scene

pytestmark = pytest.mark.django_db

TEXTS = {"contribution": "It says when water boils.", "evidence": "Water boils at 100 °C."}
PROBLEM = "not in the document: “101”"


def failed_texts(pair: Pair) -> Item:
    """A judge wrote about the pair, twice, and it failed."""
    campaign = Campaign.objects.create(collection=pair.collection, policy="evidence", panel="writer", state="finished")
    counters.add(campaign.pk, "pairs", 1)
    counters.add(campaign.pk, "escalated:evidence", 1)
    scores = {"evidence_faithfulness": 1, "language": 5}
    judged = {"judge": "measurer", "as": "fidelity to teacher", "scores": scores, "given": scores}
    Target.objects.create(
        pair=pair, version=1, kind="judge", writer="writer", good=False,
        contribution="It tells the boiling point.", evidence="Water boils at 101 °C <b>always</b>.",
        measures={"problems": [PROBLEM], "judged": judged},
    )  # fmt: skip
    return make_item(pair, "evidence", campaign=campaign.pk, priority=LAST)


@pytest.fixture
def item(collection: Collection) -> Item:
    document = make_document(collection, "Water boils at 100 °C at sea level. Ice melts at 0 °C.")
    pair = make_pair(collection, make_query(collection, "When does water boil?"), document)
    Label.objects.create(pair=pair, grade=1, origin="debate")
    return failed_texts(pair)


def status_of(item: Item) -> dict[str, Any]:
    return selectors.campaign_status(item.collection, Campaign.objects.get(policy="evidence"))


def test_texts_that_failed_are_shown_rated_and_saved_as_a_new_version_by_the_person(item: Item, client: Client) -> None:
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert PROBLEM.capitalize() in page and "failed its checks" in page and "fidelity to teacher" in page
    assert "101 °C &lt;b&gt;always&lt;/b&gt;" in page and 'name="grade"' not in page
    form = {**claim(client), **TEXTS, "milliseconds": "1200"}
    refused = client.post("/c/books/judge/evidence/", {**form, "rating": "6"}, headers=HTMX)
    assert refused.status_code == 422 and "from 1 to 5" in refused.text
    answer = client.post("/c/books/judge/evidence/", {**form, "rating": "2"})
    assert (answer.status_code, answer["Location"]) == (303, "/c/books/judge/")
    target = newest_targets(item.collection).get()
    assert (target.kind, target.writer, target.version, target.item) == ("person", "alice", 2, item)
    assert (target.contribution, target.evidence, target.rating) == (TEXTS["contribution"], TEXTS["evidence"], 2)
    assert target.measures["rules"]["fidelity"] == 1.0
    assert target.measures["milliseconds"] == 1200
    item.refresh_from_db()
    assert (item.state, item.done, item.taken) == ("settled", 1, 1)
    assert not Judgment.objects.exists()
    assert Label.objects.get().origin == "debate"
    status = status_of(item)
    assert (status["escalated"], status["open"], status["settled"]) == (1, 0, 1)
    assert "Edited" in client.get("/c/books/judge/history/").text
    assert client.get(f"/c/books/judge/history/{item.pk}/").status_code == 200
    page = signed_in(make_member(item.collection, "charlie", Role.ADMIN)).get(f"/c/books/pairs/{item.pair_id}/").text
    assert TEXTS["evidence"] in page and PROBLEM.capitalize() in page
    assert "judged by measurer" in page and "2</strong> by alice" in page


def test_undo_withdraws_the_version_and_keeps_the_text(item: Item, client: Client) -> None:
    client.post("/c/books/judge/evidence/", {**claim(client), **TEXTS})
    page = client.post("/c/books/judge/undo/", {"item": item.pk}, headers=HTMX).text
    assert "Undone" in page
    assert TEXTS["evidence"] in page
    assert not newest_targets(item.collection).exists()
    item.refresh_from_db()
    assert (item.state, item.done, item.taken) == ("open", 0, 1)
    assert status_of(item)["open"] == 1
    changed = {**claim(client), **TEXTS, "evidence": "At sea level water boils at 100 °C."}
    client.post("/c/books/judge/evidence/", changed)
    assert newest_targets(item.collection).get().evidence == changed["evidence"]
    assert list(Target.objects.order_by("version").values_list("version", flat=True)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("contribution", "  ", "The contribution is empty"),
        ("evidence", "a </evidence> b", "The evidence contains one of the tags"),
        ("evidence", "x" * 20_001, "the limit is 20,000"),
    ],
)
def test_a_text_that_cannot_be_a_target_or_comes_too_late_is_kept_on_the_page(item, client, name, value, words):
    lease = claim(client)
    answer = client.post("/c/books/judge/evidence/", {**lease, **TEXTS, name: value}, headers=HTMX)
    assert answer.status_code == 422
    assert words in answer.text and TEXTS["evidence" if name == "contribution" else "contribution"] in answer.text
    Item.objects.filter(pk=item.pk).update(state="settled")
    answer = client.post("/c/books/judge/evidence/", {**lease, **TEXTS}, headers=HTMX)
    assert answer.status_code == 409, "a lost lease"
    assert TEXTS["contribution"] in answer.text and TEXTS["evidence"] in answer.text
    assert Target.objects.count() == 1


def test_a_grade_settles_no_texts_and_texts_no_grade(item: Item, client: Client, collection: Collection) -> None:
    older = make_item(item.pair, "audit", priority=LAST + 1)
    lease = claim(client)
    answer = client.post("/c/books/judge/submit/", {**lease, "grade": 0}, headers=HTMX)
    assert answer.status_code == 409 and "not a grade" in answer.text
    assert Label.objects.get().grade == 1
    client.post("/c/books/judge/evidence/", {**lease, **TEXTS})
    # Items that ask for texts settle no label: another item's grade still does.
    client.post("/c/books/judge/submit/", {**claim(client), "grade": 0})
    assert (older.pair.labels.get().grade, older.pair.labels.get().origin) == (0, "people")
    make_scene(collection, 1)
    answer = client.post("/c/books/judge/evidence/", {**claim(client), **TEXTS}, headers=HTMX)
    assert answer.status_code == 409
    assert "needs a grade" in answer.text


def test_whoever_judges_meets_grades_first_and_skip_and_flag_work(item, collection, client):
    """What asks for texts says that its pair is relevant: an audit of it is judged before."""
    audit = make_item(item.pair, "audit")
    lease = claim(client)
    assert Assignment.objects.get(public_id=lease["item"]).item_id == audit.pk
    client.post("/c/books/judge/submit/", {**lease, "grade": 1})
    lease = claim(client)
    assert Assignment.objects.get(public_id=lease["item"]).item_id == item.pk
    client.post("/c/books/judge/flag/", {**lease, "note": "Not relevant."})
    item.refresh_from_db()
    assert item.state == "conflict"
    adjudicator = signed_in(make_member(item.collection, "bob", Role.ADJUDICATOR))
    page = adjudicator.get("/c/books/adjudicate/").text
    assert "Not relevant." in page
    assert Assignment.objects.filter(state="done").count() == 2


def test_the_writing_begins_with_pairs_that_wait_for_nobody(item: Item, collection: Collection) -> None:
    admin = signed_in(make_member(collection, "charlie", Role.ADMIN))
    assert "<strong>0</strong> of 1 relevant pair has usable evidence" in admin.get("/c/books/campaigns/").text
    form = {"write-writer": "offline-writer", "write-measure": "offline-measurer"}
    page = admin.post("/c/books/campaigns/evidence/", form, follow=True).text
    assert "Nothing to do" in page, "its only relevant pair waits for a person"
    other = make_pair(collection, None, make_document(collection, "Water boils at 100 °C."))
    Label.objects.create(pair=other, grade=1, origin="debate")
    admin.post("/c/books/campaigns/evidence/", form)
    campaign = Campaign.objects.latest("pk")
    assert (campaign.policy, campaign.state, campaign.work.get().pair) == ("evidence", "running", other)
