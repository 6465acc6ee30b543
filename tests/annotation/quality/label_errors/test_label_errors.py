"""Suspected label errors of a collection: found by a job, shown with the labels of now, sent to people by people."""

import json
import re

import numpy as np
import pytest
from django.utils import timezone

from annotation.models import AuditEntry, Role, StoredResult
from annotation.models.pair_table import BulkAct
from annotation.quality.label_errors import suspects
from annotation.quality.label_errors.signals import gather_signals, read_labels
from annotation.quality.label_errors.suspicion import Signals
from annotation.tasks import find_label_errors
from corpus.models import Collection, Item, Judgment, Label, Pair
from jobs import leases
from jobs.models import BackgroundJob
from tests.called import call
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_collection, make_document, make_member, make_pair, make_query
from tests.judged_books import make_books

pytestmark = pytest.mark.django_db
WRONG = 4  # Places of pairs whose label people gave against all votes.


@pytest.fixture
def books():
    """30 pairs with the votes of five judges; the labels follow them, but for one that Bob gave."""
    books = make_books()
    pairs = list(Pair.objects.filter(collection=books).order_by("pk"))
    make_judgment(pairs[WRONG], make_assessor(books, "bob"), 2)
    Label.objects.filter(pair=pairs[WRONG]).update(grade=2, origin="people")
    return books


@pytest.fixture
def alice(books):
    return client_of(make_member(books, "alice", Role.ADMIN))


def wrong(books: Collection) -> Pair:
    return Pair.objects.filter(collection=books).order_by("pk")[WRONG]


def test_the_label_against_all_votes_comes_first_with_each_signal_in_words(books):
    before = [list(model.objects.order_by("pk").values()) for model in (Label, Judgment, Item)]
    suspects.LABEL_ERRORS.compute_now(books)
    assert before == [list(model.objects.order_by("pk").values()) for model in (Label, Judgment, Item)]
    assert StoredResult.objects.get().kind == "label-errors"
    found = suspects.read_suspects(books)
    first = found["suspects"][0]
    assert (first.pair, first.relevant, first.against, first.votes) == (wrong(books).pk, 1, 4, 5)
    assert first.reasons[0] == "Judges: 4 of 5 votes for the other label"
    assert re.match(r"Dawid-Skene: \d+% ", first.reasons[1])
    assert found["compared"] == 30 and found["complete"]
    assert (found["counts"]["votes"], found["counts"]["dawid_skene"]) == (30, 30)
    (shown,) = suspects.describe_suspects(books, found["suspects"][:1])
    assert shown["who"] == ["bob"] and shown["row"]["grade"] == 2 and shown["place"] == 1


def test_near_duplicates_with_another_label_speak_against_both():
    birds = make_collection("birds")
    query = make_query(birds, "what do owls eat")
    text = "owls eat voles and mice in the night near old barns"
    for number, grade in enumerate((1, 0)):
        pair = make_pair(birds, query, make_document(birds, text if number else f"{text}."))
        Label.objects.create(pair=pair, grade=grade, origin="people")
    rows = read_labels(birds)
    signals = gather_signals(birds, rows, lambda done, total, phase: None)
    assert signals.others.tolist() == [1, 1] and signals.group.tolist() == [2, 2]
    assert np.isnan(signals.model).all() and np.isnan(signals.dawid_skene).all() and not signals.votes.any()
    found = suspects.find_suspects(birds)
    assert [one["group"] for one in found["suspects"]] == [2, 2]


def test_a_model_that_is_unsure_of_every_label_accuses_none(books, monkeypatch):
    """Only labels whose other label it holds likelier, and those that something else speaks against."""
    rows = read_labels(books)
    silent = np.zeros(len(rows.pairs), np.int64)
    model = np.full(len(rows.pairs), 0.4)
    model[3] = 0.6
    others, group = silent.copy(), silent.copy()
    others[5], group[5] = 1, 2
    empty = np.full(len(rows.pairs), np.nan)
    signals = Signals(silent, silent, empty, others, group, model)
    monkeypatch.setattr(suspects, "gather_signals", lambda *_: signals)
    found = suspects.find_suspects(books)["suspects"]
    assert [one["pair"] for one in found] == [rows.pairs[5], rows.pairs[3]]
    said = call("label_errors", "books")
    assert "2 of 30 labels" in said.out


def test_a_selected_label_goes_to_people_once_that_was_confirmed(alice, books):
    page = alice.get("/c/books/quality/label-errors/")
    assert page.context["found"]["at"] is None and "Find label errors" in page.text
    assert alice.post("/c/books/quality/label-errors/find/").status_code == 302
    assert AuditEntry.objects.filter(act="statistics.asked", details__what="label errors").exists()
    page = alice.get("/c/books/quality/label-errors/").text
    assert "4 of 5 votes" in page and "bob" in page
    asked = {"act": "send", "query": "", "pair": [wrong(books).pk]}
    planned = alice.post("/c/books/pairs/actions/", asked)
    assert not Item.objects.exists()  # a person confirms it first
    act = BulkAct.objects.get()
    assert planned["Location"] == f"/c/books/pairs/actions/{act.number}/"
    alice.post(f"/c/books/pairs/actions/{act.number}/run/", {})
    item = Item.objects.get()
    assert (item.pair_id, item.reason, item.state) == (wrong(books).pk, "requested", "open")
    assert Label.objects.get(pair=wrong(books)).grade == 2  # until people have judged it
    assert "waits for people" in alice.get("/c/books/quality/label-errors/").text
    Item.objects.update(state="settled")
    assert "confirmed by people" in alice.get("/c/books/quality/label-errors/").text
    Label.objects.filter(pair=wrong(books)).update(grade=0)
    assert wrong(books).pk not in {one.pair for one in suspects.read_suspects(books)["suspects"]}


def test_a_worker_tells_how_far_it_is_one_that_is_cancelled_stores_nothing_and_a_killed_one_is_replaced(
    alice, books, monkeypatch
):
    monkeypatch.setattr("jobs.workers.has_workers", lambda: True)
    alice.post("/c/books/quality/label-errors/find/")
    alice.post("/c/books/quality/label-errors/find/")  # the second joins the first
    job = BackgroundJob.objects.get()
    page = alice.get("/c/books/quality/label-errors/", headers={"HX-Request": "true"})
    assert page.status_code == 200 and page.context["is_running"]
    told: list[str] = []
    real = leases.Lease.progress

    def progress(self: leases.Lease, done: int, total: int, phase: str = "") -> None:
        told.append(phase)
        if phase == "comparing texts" and len(told) < 5:
            alice.post("/c/books/quality/label-errors/cancel/")
        real(self, done, total, phase)

    monkeypatch.setattr(leases.Lease, "progress", progress)
    find_label_errors()
    job.refresh_from_db()
    assert job.state == "cancelled" and StoredResult.objects.get().values is None
    assert told == ["reading votes", "reading texts", "comparing texts"]
    suspects.LABEL_ERRORS.refresh(books)
    told += ["again"] * 5
    assert leases.claim(BackgroundJob, kind=suspects.LABEL_ERRORS.task) is not None
    find_label_errors()
    assert StoredResult.objects.get().values is None, "another worker has it"
    BackgroundJob.objects.update(lease_until=timezone.now())
    find_label_errors()
    assert StoredResult.objects.get().values["compared"] == 30
    done = alice.get("/c/books/quality/label-errors/", headers={"HX-Request": "true"})
    assert (done.status_code, done["HX-Refresh"]) == (286, "true")


def test_the_list_is_saved_as_csv_latex_and_json(alice, books):
    address = "/c/books/quality/label-errors/"
    suspects.LABEL_ERRORS.compute_now(books)
    rows = json.loads(alice.get(f"{address}?as=json").text)
    first = rows[0]
    assert (first["place"], first["grade"], first["origin"], first["votes_against"]) == (1, 2, "people", 4)
    lines = alice.get(f"{address}?as=csv").text.splitlines()
    assert lines[0].startswith("place,query_id,doc_id,grade") and len(lines) == len(rows) + 1
    assert "\\toprule" in alice.get(f"{address}?as=tex").text
    assert alice.get(f"{address}?as=exe").status_code == 404
    assert suspects.find_suspects(make_collection("stones"))["suspects"] == []


def test_the_command_ranks_stores_and_refuses_in_one_line(books):
    document = call("label_errors", "books", "--limit", "2", "--json").json
    assert document["suspects"][0]["grade"] == 2 and len(document["suspects"]) <= 2
    assert StoredResult.objects.get().values["compared"] == document["compared"] == 30
    assert "4 of 5 votes" in call("label_errors", "books").out
    for arguments, words in ((("nobody",), "no collection"), (("books", "--limit", "0"), "--limit must be 1")):
        refused = call("label_errors", *arguments)
        assert refused.code == 2 and words in refused.err
