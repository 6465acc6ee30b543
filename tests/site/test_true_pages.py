"""What pages say is true, and a button that cannot work is disabled with its reason."""

import json
import re

import pytest
from django.conf import settings
from django.test import Client

from annotation.data.statistics import statistics_of
from annotation.models import Assignment, Role
from annotation.work.adjudication.conflicts import why_conflict
from benchmark.models import Qrels
from corpus.models import Assessor, Collection, Judgment, Label, Pair, Query
from corpus.models.aspects import Aspect
from judges.models import Campaign, Tally, Work
from tests.admin_site import _ended
from tests.benchmark_scene import collection_of_books, runs_of
from tests.evidence import make_campaign, make_judge, make_judgment, make_label
from tests.factories import client_of, make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.reading import flat
from tests.training_sets import write_set
from training.jobs import pages as training_pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


def signed_in(collection: Collection, name: str = "charlie", role: int = Role.ADMIN) -> Client:
    return client_of(make_member(collection, name, role))


def end(campaign: Campaign, state: str, agreed: int | None = None) -> None:
    """A pair that the campaign labelled, sent to people (who settled it: "settled"), failed at, or has before it."""
    pair = make_pair(campaign.collection)
    kept = "escalated" if state == "settled" else state
    Work.objects.create(campaign=campaign, pair=pair, state=kept, agreed_in_round=agreed)
    if kept == "escalated":
        make_item(pair, campaign=campaign.pk, state="settled" if state == "settled" else "open")
    if state in ("labelled", "settled"):
        make_label(pair, 1, "people" if state == "settled" else "debate")


def test_statistics_have_words_of_an_answer_and_relevant_documents_of_a_query(books: Collection) -> None:
    for name, answers in (("q1", ["four words are here", "two words"]), ("q2", [])):
        query = make_query(books, f"A question {name}?", external_id=name, answers=answers)
        for grade in (1, 1, 0) if name == "q1" else (1,):
            Label.objects.create(pair=make_pair(books, query, make_document(books)), grade=grade, origin="debate")
    make_pair(books, make_query(books, "Without a label?", answers=[]))
    found = statistics_of(books)
    assert (found["words_an_answer"], found["relevant_a_query"], found["queries_labelled"]) == (3.0, 1.5, 2)
    page = signed_in(books).get("/c/books/statistics/").text
    assert "3.0 words" in page and "1.5 per query" in page


def test_statistics_have_positive_documents_aspects_and_lengths_in_words_between_spaces(books: Collection) -> None:
    """BRIGHT-Pro table 1, counted by hand: a document of two aspects is one, one that supports none is not counted."""
    wing, heat = (make_query(books, text) for text in ("Why does a well-shaped wing lift?", "它是映射 again"))
    make_query(books, "No aspects here.")
    lift, flow, plate = (
        Aspect.objects.create(query=query, external_id=name, text=text)
        for query, name, text in (
            (wing, "a1", "state-of-the-art lift"),
            (wing, "a2", "flow"),
            (heat, "a1", "plates, too"),
        )
    )
    Aspect.objects.create(query=heat, external_id="old", text="gone", is_current=False)
    first, second, third = (make_document(books, f"text {number}") for number in range(3))
    supports = [(lift, first, 1), (flow, first, 1), (flow, second, 1), (lift, third, 0), (plate, third, 1)]
    for aspect, document, grade in supports:
        pair, _made = Pair.objects.get_or_create(collection=books, query=aspect.query, document=document)
        Label.objects.create(pair=pair, aspect=aspect, grade=grade, origin="people")
    found = statistics_of(books)
    assert (found["queries_with_aspects"], found["aspects_a_query"], found["positive_a_query"]) == (2, 1.5, 1.5)
    assert found["words_an_aspect"] == (2 + 1 + 2) / 3
    assert found["words_a_query"] == (6 + (3 + 1) + 3) / 3
    page = " ".join(signed_in(books).get("/c/books/statistics/").text.split())
    assert all(figure in page for figure in ("1.50 per query", "1.7 words", "1.50 documents"))


def test_relevant_documents_of_a_query_are_those_of_the_gold_and_of_filled_holes(books: Collection) -> None:
    """D table 7: before and after. A label that says otherwise than the gold holds."""
    experts = Assessor.objects.create(collection=books, kind="reference", name="qrels")
    for number, holes in enumerate((2, 1, 0)):
        query = make_query(books, f"A question {number}?", external_id=f"q{number}")
        gold = [make_pair(books, query, make_document(books)) for _ in range(2)]
        for pair in gold:
            Judgment.objects.create(pair=pair, assessor=experts, grade=1)
        for _ in range(holes):
            Label.objects.create(pair=make_pair(books, query, make_document(books)), grade=1, origin="debate")
    Label.objects.create(pair=gold[0], grade=0, origin="people")
    found = statistics_of(books)
    assert (found["relevant_before"], found["relevant_a_query"], found["queries_labelled"]) == (2.0, (6 + 3 - 1) / 3, 3)
    assert found["labelled"] == 4
    assert "2.0 by reference" in signed_in(books).get("/c/books/statistics/").text


def test_the_funnel_has_the_filters_step_and_dropped_pairs_are_not_open_after_a_round(books: Collection) -> None:
    campaign = make_campaign(books, [make_judge("debater")], policy="debate")
    campaign.protocol = {"filter": [1, 2, 3]}
    campaign.save()
    sums = {
        "pairs": 30, "labelled:1": 5, "labelled:0": 20, "escalated:disagreement": 5, "agreed:1": 11, "agreed:2": 4,
        "route:r0.m0.n.filter": 10, "route:r1.m0.n": 11,
    }  # fmt: skip
    for key, value in sums.items():
        Tally.objects.create(campaign=campaign, shard=0, key=key, value=value)
    for place in range(30):
        agreed = 1 if place < 11 else 2 if place < 15 else None
        end(campaign, "labelled" if place < 25 else "escalated", agreed=agreed)
    steps = [(step["words"], step["pairs"]) for step in statistics_of(books)["funnel"]]
    assert steps[1:7] == [
        ("judged", 30), ("rejected by the filter", 10), ("kept by the filter", 20), ("agreed in round 1", 11),
        ("undecided after round 1", 9), ("agreed in round 2", 4),
    ]  # fmt: skip
    assert "rejected by the filter" in signed_in(books).get("/c/books/").text


def test_pairs_that_failed_or_wait_for_people_are_not_said_to_have_a_label(books: Collection) -> None:
    """Of seven pairs judges labelled two and people one of three; one failed, one is not judged."""
    campaign = make_campaign(books, [make_judge("debater")], policy="debate")
    sums = {"pairs": 7, "labelled:1": 1, "labelled:0": 1, "escalated:disagreement": 3, "settled": 1, "failed": 1}
    for key, value in sums.items():
        Tally.objects.create(campaign=campaign, shard=0, key=key, value=value)
    for state in ("labelled", "labelled", "settled", "escalated", "escalated", "failed", "pending"):
        end(campaign, state)
    Campaign.objects.update(state="running")
    client = signed_in(books)
    home, overview, campaigns = (flat(client.get(path).text) for path in ("/", "/c/books/", "/c/books/campaigns/"))
    assert "<strong>3</strong>of 7 pairs have a label" in home and 'max="7" value="3"' in home
    assert "<strong>2</strong>wait for people" in home
    assert re.search(r"<strong>3</strong>of<a [^>]*>7 pairs</a>resolved", overview)
    assert "2 wait for people" in overview and "1 in work" in overview and "1 failed" in overview
    assert "6 of 7 pairs done" in campaigns and "2 labelled" in campaigns and "3 escalated" in campaigns
    assert all("outcome" not in re.sub(r"<[^>]*>", "", page) for page in (home, campaigns))


def test_see_the_pairs_of_somebody_leads_to_them_and_is_not_offered_where_there_are_none(books: Collection) -> None:
    admin, alice, bob = signed_in(books), make_member(books, "alice"), make_member(books, "bob")
    item = make_item(make_pair(books))
    make_judgment(item.pair, alice.assessor, 1, item=item)
    page = admin.get(f"/c/books/people/{alice.pk}/").text
    address = re.search(r'href="(/c/books/pairs/\?a=alice[^"]*)">\s*Show pairs', page)
    assert address and admin.get(address[1].replace("&amp;", "&")).status_code == 200
    assert "Show pairs" not in admin.get(f"/c/books/people/{bob.pk}/").text


def test_neither_evidence_nor_a_training_set_is_made_of_no_pair(books: Collection) -> None:
    admin = signed_in(books)

    def sets() -> str:
        return admin.get("/c/books/exports/").text

    def campaigns() -> str:
        return admin.get("/c/books/campaigns/").text

    assert re.search(r'<fieldset disabled aria-describedby="no-labels">\s*<legend>Training set', sets())
    assert re.search(r'<button[^>]*\s+disabled\s+aria-describedby="write-why"\s*>\s*Generate', campaigns())
    assert 'id="no-labels"' in sets() and 'id="write-why"' in campaigns()
    pair = make_pair(books)
    Label.objects.create(pair=pair, grade=1, origin="debate")
    assert "disabled" not in sets().split("<legend>Training set")[0][-60:]
    assert "for 1 pair</button>" in campaigns() and 'id="write-why"' not in campaigns()
    make_item(pair, "evidence")
    assert 'id="write-why"' in campaigns()


def write_extra(state: str) -> None:
    line = {"state": state, "line": "left out (TRAINING=0)", "done": 0, "of": 9}
    (settings.VAR / training_pages.EXTRA).write_text(json.dumps(line))


def test_training_without_the_extra_cannot_be_started(books: Collection, settings, tmp_path, monkeypatch) -> None:
    settings.VAR = tmp_path
    rows = write_set(tmp_path / "exports" / "books" / "one")
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: [])
    admin = signed_in(books)
    assert re.search(r">\s*Start training\s*</button>", admin.get("/c/books/training/").text)
    write_extra("left-out")
    page = admin.get("/c/books/training/").text
    assert re.search(r'disabled\s+aria-describedby="train-why"\s*>\s*Start training', page)
    assert "Training is not installed: left out (TRAINING=0)." in page
    given = {"data": str(rows), "recipe": "prism", "base": "tiny:qwen3", "device": "cpu"}
    refused = admin.post("/c/books/training/start/", given)
    assert refused.status_code == 422 and "is not installed" in " ".join(refused.text.split())
    write_extra("ready")
    monkeypatch.setattr("training.jobs.worker_pool.find_spec", lambda name: None)
    assert "disabled" in admin.get("/c/books/training/").text


def test_two_versions_are_not_said_to_be_missing() -> None:
    books = collection_of_books()
    runs_of(books)
    admin = signed_in(books)
    assert "needs two versions" in admin.get("/c/books/benchmark/report/").text
    pair = books.pair_set.first() or make_pair(books)
    Label.objects.create(pair=pair, grade=1, origin="debate")
    for what in ("original", "labels"):
        admin.post("/c/books/benchmark/qrels/", {"what": what})
    assert Qrels.objects.filter(collection=books).count() >= 2
    page = admin.get("/c/books/benchmark/report/").text
    assert "needs two versions" not in page
    assert "Report available" in page


def test_a_form_with_emptied_passwords_does_not_say_that_they_are_still_there(books: Collection) -> None:
    form = {"oldpassword": "", "password1": "a", "password2": "b"}
    page = signed_in(books).post("/accounts/password/change/", form).text
    assert "Your input is kept" not in page and "Enter passwords and choose files again." in page


def test_a_conflict_has_its_own_reason_also_in_a_blind_audit(books: Collection) -> None:
    for said, why in (
        ([(0, False), (1, False)], "Annotators gave different grades."),
        ([(1, False), (None, True)], "An annotator flagged this pair."),
        ([(None, False)], "Everyone assigned to this pair skipped it."),
        ([], ""),
    ):
        assert why_conflict([{"grade": grade, "flagged": flagged} for grade, flagged in said]) == why
    pair = make_pair(books)
    item = make_item(pair, "audit", state="conflict", overlap=2, taken=2, done=2)
    for name, grade in (("alice", 0), ("bob", 1)):
        member = make_member(books, name)
        judgment = make_judgment(pair, member.assessor, grade, item=item)
        Assignment.objects.create(item=item, membership=member, state="done", judgment=judgment, **_ended())
    page = signed_in(books, "dora", Role.ADJUDICATOR).get("/c/books/adjudicate/").text
    assert "different grades" in page and "without a debate" not in page


def test_candidates_that_only_a_grade_names_are_not_ready_to_be_judged(books: Collection) -> None:
    pair = make_pair(books)
    type(pair).objects.filter(pk=pair.pk).update(is_candidate=False)
    assert "This collection has no pairs yet" in signed_in(books).get("/c/books/").text
    assert Query.objects.exists()
