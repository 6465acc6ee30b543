"""Operations by what they do: settings, people, audits, conflicts, comparisons, runs, reports, trainings, models."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from actions.services import Actor
from annotation.access.permissions import collection_scope
from annotation.models import Assignment, AuditEntry, Guideline, Invitation, Membership, Role
from annotation.models.comparisons import ComparisonSet, Preference
from annotation.models.snapshots import Snapshot
from annotation.models.threads import Thread
from annotation.work.comparing.services import end_set
from annotation.work.threads.options import ReplyOptions
from annotation.work.threads.services import answer_thread
from api.tokens import make_token
from benchmark.models import Report, Run
from corpus.models import Collection, CurrentJudgment, Item, Label, Target
from judges.costs import counters
from judges.models import Audit, Campaign
from tests.annotation.work.judging.test_evidence_pages import PROBLEM, failed_texts
from tests.api.conftest import Call
from tests.comparing_scene import make_relevant
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.queue_scene import claim, flag
from tests.site.test_permissions import World
from tests.training_sets import write_set
from training.models import Job

pytestmark = pytest.mark.django_db


def acts() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("act", flat=True))


def test_settings_are_read_and_changed_all_or_none(call: Call) -> None:
    collection = make_collection("c", grades=3)
    alice, path = make_member(collection, "alice", Role.ADMIN).user, "collections/c/settings"
    before = call(alice, "GET", path).json()
    assert before["overlap"] == collection.overlap and before["guidelines"]
    same = {
        "title": "Books", "overlap": 3, "order": "random", "budget": 12.5, "instruction": "It answers the question.",
        "document_format": "markdown",
    }  # fmt: skip
    changes = {**same, "arms": {"shown": 1, "hidden": 1}, "guidelines": "Read first."}
    done = call(alice, "PATCH", path, changes)
    assert done.status_code == 200, done.content
    after = done.json()
    assert after.items() >= same.items() and after["arms"] == {"shown": 1, "hidden": 1, "reveal": 0}
    assert after["guidelines"] == "Read first.\n" and after["lease_minutes"] == before["lease_minutes"]
    assert set(acts()) >= {"settings.changed", "settings.guidelines", "settings.instruction"}
    assert Guideline.objects.filter(collection=collection, text="Read first.\n").exists()
    assert call(alice, "PATCH", path, {"budget": None}).json()["budget"] is None
    refused = call(alice, "PATCH", path, {"title": "New", "arms": {"shown": 0}})
    assert refused.status_code == 422 and refused.json()["errors"][0]["field"] == "body.arms", refused.content
    assert Collection.objects.get(pk=collection.pk).title == "Books"


def test_people_are_invited_once_with_one_key_and_a_link_is_made_and_revoked(call: Call, settings: Any) -> None:
    settings.EMAIL_HOST = "localhost"
    alice, here = make_member(make_collection("c"), "alice", Role.ADMIN).user, "collections/c/invitations"
    ask = {"people": ["Dana", "eve@example.org"], "role": "adjudicator", "days": 3}
    made = call(alice, "POST", here, ask, **{"Idempotency-Key": "one"})
    assert made.status_code == 201, made.content
    assert [row["note"] for row in made.json()] == ask["people"] and made.json()[0]["role"] == "adjudicator"
    assert made.json()[0]["link"].startswith("http") and [row["mailed"] for row in made.json()] == [False, True]
    call(alice, "POST", here, ask, **{"Idempotency-Key": "one"})
    assert Invitation.objects.count() == 2 and len(mail.outbox) == 1
    wrong = call(alice, "POST", here, {"people": ["Dana", "dana"]})
    assert wrong.status_code == 422 and "twice" in wrong.json()["detail"] and Invitation.objects.count() == 2
    day = (timezone.localdate() + timedelta(2)).isoformat()
    link = call(alice, "POST", f"{here}/link", {"last_day": day, "limit": 9}).json()
    assert link["limit"] == link["uses_left"] == 9
    assert call(alice, "DELETE", f"{here}/{link['number']}").status_code == 204
    assert call(alice, "GET", f"{here}/{link['number']}").status_code == 404
    assert len(call(alice, "GET", here).json()["items"]) == 2


def test_members_are_changed_paused_limited_and_removed_but_not_by_themselves(call: Call) -> None:
    collection = make_collection("c")
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")

    def change(member: Membership, **values: Any) -> Any:
        return call(alice.user, "PATCH", f"collections/c/members/{member.pk}", values)

    changed = change(bob, role="adjudicator", paused=True, note="Rest.").json()
    assert changed["role"] == "adjudicator" and changed["paused"]
    assert not change(bob, paused=False).json()["paused"]
    none = {"daily_quota": None, "total_quota": None, "last_day": None}
    assert changed["limits"] == none
    limited = change(bob, limits={"daily_quota": 40, "last_day": "2030-01-31"}).json()
    assert limited["limits"] == none | {"daily_quota": 40, "last_day": "2030-01-31"}
    limited = change(bob, limits={"daily_quota": None, "total_quota": 900}).json()
    assert limited["limits"] == none | {"total_quota": 900, "last_day": "2030-01-31"}, "what is left out stays"
    refused = change(bob, limits={"daily_quota": 0})
    assert refused.status_code == 422 and "daily_quota" in refused.text
    assert change(bob, limits=none).json()["limits"] == none
    assert call(alice.user, "DELETE", f"collections/c/members/{bob.pk}").json()["active"] is False
    assert change(bob, active=True).json()["active"] is True
    for own in (change(alice, role="annotator"), change(alice, active=False)):
        assert own.status_code == 422 and "your own access" in own.json()["detail"]
    assert call(alice.user, "DELETE", f"collections/c/members/{alice.pk}").status_code == 422


def test_audits_are_read_and_more_are_drawn(call: Call) -> None:
    world = World()
    admin, campaign = world.people["admin"], world.campaign
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    item = make_item(world.pair, "audit")
    Audit.objects.create(campaign=campaign, pair=world.pair, item=item, stratum="r1.m0.y", probability=1.0, label=1)
    counters.add(campaign.pk, "route:r1.m0.y", 1)
    path = "collections/birds/audits"
    listed = call(admin, "GET", path).json()["items"]
    assert [(row["campaign"], row["drawn"], row["resolved"]) for row in listed] == [(campaign.number, 1, 0)]
    found = call(admin, "GET", f"{path}/{campaign.number}").json()
    assert found["can_draw"] and [one["key"] for one in found["routes"]] == ["r1.m0.y"]
    assert found["routes"][0]["accuracy"]["value"] is None and found["routes"][0]["accuracy"]["reason"]
    assert call(admin, "POST", f"{path}/{campaign.number}/draw", {"up_to": 5}).json() == {"pairs": 0}
    assert call(admin, "POST", f"{path}/{campaign.number}/draw", {"up_to": 5, "route": "west"}).status_code == 404
    assert "audit.drawn" in acts()
    assert call(admin, "GET", f"{path}/999999").status_code == 404


def conflict_of(collection: Collection) -> Item:
    """A pair that two people graded differently."""
    item = make_item(make_pair(collection), overlap=2, taken=2, done=2, state="conflict")
    ended = {"state": "done", "lease_until": timezone.now(), "ended_at": timezone.now()}
    for name, grade in (("bob", 0), ("charlie", 1)):
        member = make_member(collection, name)
        judgment = make_judgment(item.pair, member.assessor, grade, item=item, comment=f"{grade}!")
        Assignment.objects.create(item=item, membership=member, judgment=judgment, **ended)
    return item


def test_a_conflict_is_read_resolved_and_taken_back(call: Call) -> None:
    collection = make_collection("c", overlap=2)
    item, alice = conflict_of(collection), make_member(collection, "alice", Role.ADJUDICATOR)
    found = call(alice.user, "GET", "collections/c/conflict").json()
    conflict = found["conflict"]
    assert found["waiting"] == 1 and conflict["item"] == item.pk and conflict["document"]
    assert {one["grade"] for one in conflict["opinions"]} == {0, 1} and "bob" not in str(found)
    body = {"item": item.pk, "shown": conflict["shown"], "grade": 1, "comment": "Yes."}
    assert call(alice.user, "POST", "collections/c/conflict/resolve", body | {"grade": 7}).status_code == 422
    assert call(alice.user, "POST", "collections/c/conflict/resolve", body | {"item": 12345}).status_code == 404
    Collection.objects.update(min_judgment_ms=10_000)
    assert call(alice.user, "POST", "collections/c/conflict/resolve", body).status_code == 422, "it is too soon"
    Collection.objects.update(min_judgment_ms=0)
    done = call(alice.user, "POST", "collections/c/conflict/resolve", body)
    assert done.status_code == 200 and done.json() == {"conflict": None, "waiting": 0, "last_item": item.pk}
    assert CurrentJudgment.objects.get(step="adjudication").grade == 1
    back = call(alice.user, "POST", "collections/c/conflict/undo", {"item": item.pk}).json()
    assert back["conflict"]["item"] == item.pk
    assert call(alice.user, "POST", "collections/c/conflict/undo", {"item": item.pk}).status_code == 404


def test_a_conflict_has_the_answers_to_its_flag_without_the_annotators_name(call: Call) -> None:
    books = make_collection("books", order="random")
    make_item(make_pair(books))
    alice, bob = make_member(books, "alice"), make_member(books, "bob", Role.ADJUDICATOR)
    flag(alice, claim(alice), "Two documents in one.")
    (opinion,) = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]["opinions"]
    assert (opinion["flagged"], opinion["replies"]) == (True, [])
    actor = Actor.of(collection_scope(bob.user, "answer", "books"))
    answer_thread(actor, Thread.objects.get(), ReplyOptions(text="Which two?"))
    (opinion,) = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]["opinions"]
    assert [(row["author"], row["text"]) for row in opinion["replies"]] == [("bob", "Which two?")]
    assert "alice" not in str(opinion)


def test_a_set_of_comparisons_is_drawn_answered_undone_and_read(call: Call) -> None:
    collection = make_collection("c")
    make_relevant(collection, documents=3)
    ada, alice = make_member(collection, "ada", Role.ADMIN).user, make_member(collection, "alice").user
    drawn = call(ada, "POST", "collections/c/comparisons", {"opponents": 2, "title": "first"})
    assert (drawn.status_code, drawn.json()["comparisons"], drawn.json()["state"]) == (201, 3, "open")
    queue = call(alice, "POST", "collections/c/compare", {}).json()
    assert (len(queue["open"]), queue["left"], queue["closed"]) == (2, 3, "")
    task = queue["open"][0]
    body = {"set": task["set"], "comparison": task["comparison"], "answer": "left"}
    assert call(alice, "POST", "collections/c/compare", {"answer": body}).json()["answered"] == 1
    assert call(alice, "POST", "collections/c/compare", {"undo": True}).json()["answered"] == 0
    call(alice, "POST", "collections/c/compare", {"answer": body | {"answer": "right"}})
    assert Preference.objects.count() == 3
    results = call(ada, "GET", "collections/c/comparisons/1").json()
    assert len(results["queries"][0]["documents"]) == 2
    assert (results["figures"][0]["answers"], results["figures"][0]["left"]["value"]) == (1, 0.0)
    assert [row["answered"] for row in call(ada, "GET", "collections/c/comparisons").json()["items"]] == [1]
    end_set(Actor("ada"), ComparisonSet.objects.get())
    assert call(ada, "GET", "collections/c/comparisons/1").json()["state"] == "ended"
    assert call(alice, "POST", "collections/c/compare", {"answer": body}).status_code == 409


def test_contribution_and_evidence_are_written(call: Call) -> None:
    collection = make_collection("c")
    bob = make_member(collection, "bob")
    document = make_document(collection, "Water boils at 100 °C at sea level.")
    pair = make_pair(collection, make_query(collection, "When does water boil?"), document)
    Label.objects.create(pair=pair, grade=1, origin="debate")
    failed_texts(pair)
    task = call(bob.user, "POST", "collections/c/task/claim").json()["task"]
    assert task["asks"] == "texts" and task["texts"]["problems"] == [PROBLEM] and task["texts"]["writer"] == "writer"
    held = {"item": task["item"], "token": task["token"]}
    empty = call(bob.user, "POST", "collections/c/task/write", {**held, "contribution": "", "evidence": "It boils."})
    assert empty.status_code == 422 and "contribution is empty" in empty.json()["detail"].lower()
    texts = {"contribution": "It says when water boils.", "evidence": "Water boils at 100 °C.", "rating": 2}
    done = call(bob.user, "POST", "collections/c/task/write", {**held, **texts})
    assert done.status_code == 200 and done.json()["task"] is None, done.content
    stored = Target.objects.get(kind="person")
    assert (stored.evidence, stored.rating, stored.writer) == ("Water boils at 100 °C.", 2, "bob")


def test_runs_are_imported_made_measured_and_deleted(call: Call, client: Client) -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    pair = make_pair(collection)
    make_judgment(pair, make_assessor(collection, "qrels", "reference"), 1, step="import")
    query, document = pair.query.external_id, pair.document.external_id
    _row, token = make_token(alice.user, None, name="n", scopes=["manage"], days=1)
    send = {"headers": {"Authorization": f"Bearer {token}"}}
    file = SimpleUploadedFile("mine.run", f"{query} Q0 {document} 1 2.5 tag\n".encode())
    sent = client.post("/api/v1/collections/c/runs/import", {"files": [file]}, **send)
    assert sent.status_code == 201, sent.content
    assert sent.json()[0]["name"] == "mine" and sent.json()[0]["lines"] == 1
    bad = SimpleUploadedFile("bad.run", b"q Q0 d 1\n")
    refused = client.post("/api/v1/collections/c/runs/import", {"files": [bad], "run": "b"}, **send)
    assert refused.status_code == 422 and "bad.run" in refused.json()["detail"] and Run.objects.count() == 1
    number = sent.json()[0]["number"]
    text = b"".join(call(alice.user, "GET", f"collections/c/runs/{number}/file").streaming_content).decode()
    assert text.split() == [query, "Q0", document, "1", "2.5", "mine"]

    made = call(alice.user, "POST", "collections/c/runs", {"name": "bm", "k1": 0.9})
    assert made.status_code == 201 and made.json()["state"] == "waiting"
    assert Run.objects.get(name="bm").recipe["k1"] == 0.9
    assert call(alice.user, "POST", "collections/c/runs/estimate", {"name": "x"}).json()["asks"] is False
    for body, words in (({"colour": "red"}, "colour"), ({"k1": 99}, "body.k1")):
        refused = call(alice.user, "POST", "collections/c/runs", {"name": "x", **body})
        assert refused.status_code == 422 and words in refused.text
    path = f"collections/c/runs/{made.json()['number']}"
    assert call(alice.user, "POST", f"{path}/cancel").json()["state"] == "cancelled"
    assert call(alice.user, "POST", f"{path}/cancel").status_code == 422
    assert call(alice.user, "POST", f"{path}/go-on").json()["state"] == "waiting"
    assert call(alice.user, "DELETE", path).status_code == 204
    assert [row["name"] for row in call(alice.user, "GET", "collections/c/runs").json()["items"]] == ["mine"]

    empty = call(alice.user, "GET", "collections/c/leaderboard").json()
    assert (empty["state"], empty["systems"]) == ("missing", [])
    board = call(alice.user, "POST", "collections/c/leaderboard").json()
    assert board["is_current"] and [(one["name"], one["value"]) for one in board["systems"]] == [("mine", 1.0)]
    assert call(alice.user, "GET", "collections/c/leaderboard?measure=luck").status_code == 422
    assert [one["number"] for one in call(alice.user, "GET", "collections/c/qrels").json()] == [1]
    qrels = b"".join(call(alice.user, "GET", "collections/c/qrels/1/file").streaming_content).decode()
    assert qrels.split() == [query, "0", document, "1"]
    assert call(alice.user, "POST", "collections/c/qrels", {"kind": "original"}).json()["number"] == 1

    report = call(alice.user, "POST", "collections/c/reports", {"k": 1})
    assert report.status_code == 201 and report.json()["number"] == board["report"], report.content
    assert Report.objects.get(number=report.json()["number"]).options["k"] == 1
    for body in ({"runs": ["nobody"]}, {"before": 9}, {"k": 1000}):
        assert call(alice.user, "POST", "collections/c/reports", body).status_code == 422, body
    assert set(acts()) >= {"runs.imported", "run.started", "run.control", "report.asked", "qrels.made"}


def test_a_training_is_started_read_and_cancelled(call: Call, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr("training.jobs.pages.why_not", lambda: "")
    world = World()
    admin, path = world.people["admin"], "collections/birds/trainings"
    folder = write_set(Path(settings.VAR) / "exports" / "birds" / "one")
    values = {"manifest": {"files": []}, "state": "ready"}
    row = Snapshot.objects.create(collection=world.collection, format="prism", folder=str(folder), **values)
    assert [one["export"] for one in call(admin, "GET", f"{path}/sets").json()] == [row.number]
    body: dict[str, Any] = {"recipe": "prism", "data": row.number, "base": "tiny:qwen3"}
    for wrong in ({"data": 12345}, {"base": "../secret"}, {"recipe": "rtriever"}):
        assert call(admin, "POST", path, body | wrong).status_code == 422, wrong
    started = call(admin, "POST", path, body | {"max_steps": 5, "packing": False})
    assert started.status_code == 201, started.content
    job = Job.objects.get(number=started.json()["number"])
    assert job.options["options"] == {"preset": "tiny", "max_steps": 5, "packing": False}
    assert started.json()["state"] == "queued" and "training.started" in acts()
    assert call(admin, "POST", f"{path}/{job.number}/cancel").json()["state"] == "cancelled"
    assert call(admin, "POST", f"{path}/{job.number}/cancel").status_code == 422
    assert call(admin, "POST", f"{path}/{job.number}/go-on").json()["state"] == "queued"
    assert call(admin, "GET", f"{path}/{world.job.number}").json()["model"] == world.model.pk


def test_a_model_is_read_and_used(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("training.jobs.pages.why_not", lambda: "")
    world = World()
    admin, path = world.people["admin"], f"collections/birds/models/{world.model.pk}"
    assert call(admin, "GET", path).json()["is_here"] is False
    world.model.folder = str(tmp_path)
    world.model.save()
    (tmp_path / "reranker.json").write_text("{}")
    assert call(admin, "GET", path).json()["is_here"] is True
    used = call(admin, "POST", f"{path}/evaluate", {"precision": "fp32"})
    assert used.status_code == 201, used.content
    job = Job.objects.get(number=used.json()["number"])
    assert job.kind == "evaluate" and job.options["precision"] == "fp32" and "training.control" in acts()
    assert call(admin, "POST", f"{path}/evaluate", {"precision": "fp7"}).status_code == 422
    assert call(admin, "POST", f"{path}/dance", {}).status_code == 422


def test_agreement_is_a_table_of_every_two_assessors(call: Call) -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    people = [make_member(collection, name).assessor for name in ("bob", "charlie")]
    for _ in range(3):
        pair = make_pair(collection)
        for assessor in people:
            make_judgment(pair, assessor, 1)
    table = call(alice.user, "GET", "collections/c/agreement?format=csv")
    assert call(alice.user, "GET", "collections/c/agreement.csv").content == table.content, "its former address"
    assert table.status_code == 200 and table["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(table.content.decode().splitlines())
    assert (row["a"], row["b"], row["n"]) == ("bob", "charlie", "3")
    for wrong in ("assessors=nobody", "binarize=9"):
        assert call(alice.user, "GET", f"collections/c/agreement.csv?{wrong}").status_code == 422
    assert call(alice.user, "POST", "collections/c/agreement", {"binarize": 9}).status_code == 422
    assert "statistics.asked" not in acts(), "what was refused was not asked for"
    measured = call(alice.user, "POST", "collections/c/agreement", {"people": True})
    assert measured.json() == {"done": True} and "statistics.asked" in acts()
