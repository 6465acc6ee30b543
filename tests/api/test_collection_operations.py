"""Judges, panels, prices, acts on pairs, the audit log, replays, label errors, suites, curves, presets: by the API."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.models import AuditEntry, Role
from annotation.models.imports import FileImport, Upload
from annotation.models.pair_table import BulkAct
from api.tokens import make_token
from benchmark.models import Run, Suite
from corpus.models import Collection, Item
from judges.models import JudgeVersion, Panel
from judges.models.canaries import CanarySchedule
from judges.panels.offline_panel import ensure_offline
from tests.api.conftest import Call
from tests.evidence import make_judge
from tests.factories import make_collection, make_member, make_pair, make_user
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db
OFFLINE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]


def acts() -> list[str]:
    found = AuditEntry.objects.exclude(act__startswith="token.").order_by("pk")
    return list(found.values_list("act", flat=True))


def admin(name: str = "c") -> Any:
    return make_member(make_collection(name), "alice", Role.ADMIN).user


def test_a_preset_sets_what_a_study_used(call: Call) -> None:
    alice = admin()
    before = call(alice, "GET", "collections/c/settings").json()
    done = call(alice, "POST", "collections/c/settings/preset", {"preset": "dream"})
    assert done.status_code == 200 and done.json()["overlap"] == 3 != before["overlap"], done.content
    assert acts() == ["settings.changed"]
    call(alice, "POST", "collections/c/settings/preset", {"preset": "dream"})
    assert acts() == ["settings.changed"]
    assert call(alice, "POST", "collections/c/settings/preset", {"preset": "mine"}).status_code == 422


def test_the_panel_of_a_collection_is_chosen(call: Call) -> None:
    alice = admin()
    ensure_offline()
    before = call(alice, "GET", "collections/c/panel").json()
    assert before["name"] == "offline" and len(before["debate"]) == 2
    refused = call(alice, "POST", "collections/c/panel", {"judges": OFFLINE[:3], "default": True})
    assert refused.status_code == 403 and "owners" in refused.json()["detail"].lower()
    made = call(alice, "POST", "collections/c/panel", {"judges": OFFLINE[:3]})
    assert made.status_code == 200, made.content
    assert (made.json()["judges"], made.json()["debate"]) == (OFFLINE[:3], before["debate"])
    assert Panel.objects.get(is_default=True).name == "offline", "an owner alone changes the default"
    assert call(alice, "POST", "collections/c/panel", {"judges": OFFLINE[:1], "debate": []}).json()["debate"] == []
    for wrong in ({"judges": OFFLINE[:2]}, {"judges": ["nobody"]}, {"judges": OFFLINE, "debate": ["offline-for"]}):
        assert call(alice, "POST", "collections/c/panel", wrong).status_code == 422, wrong
    assert call(alice, "GET", "collections/c/panel").json()["judges"] == OFFLINE[:1]


def test_models_self_checks_and_canaries(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = admin()
    make_judge("kept")
    (judge,) = call(alice, "GET", "collections/c/judges").json()
    assert (judge["name"], judge["works"], judge["votes"]) == ("kept", None, False)
    here = "collections/c/self-checks"
    assert call(alice, "POST", f"{here}/estimate", {"judges": OFFLINE[:1]}).json()["cost"] == 0.0
    checks = call(alice, "GET", here).json()
    assert {one["judge"] for one in checks} >= set(OFFLINE) and {one["passes"] for one in checks} == {None}
    refused = call(alice, "POST", here, {"judges": ["nobody"]})
    assert refused.status_code == 422 and "There is no judge" in refused.json()["detail"]
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: 1)
    assert call(alice, "POST", here, {"judges": OFFLINE[:1]}).json() == {"judges": OFFLINE[:1]}
    twice = call(alice, "POST", here, {"judges": OFFLINE[:1]})
    assert twice.status_code == 422 and "self-check running" in twice.json()["detail"]
    read = call(alice, "GET", "collections/c/canaries")
    assert (read.json()["paid"], read.json()["asked"]) == (False, False)
    changed = call(alice, "PATCH", "collections/c/canaries", {"hours": 7}, **{"If-Match": read["ETag"]})
    assert changed.json()["hours"] == 7 and CanarySchedule.objects.get().hours == 7
    assert call(alice, "POST", "collections/c/canaries", {}).json()["asked"]
    assert {"judge.self-check", "canaries.schedule", "canaries.asked"} <= set(acts())


JUDGES = """
[[judge]]
name = "mine"
provider = "openai"
model = "gpt-5-mini"

[panel]
name = "of-one"
ensemble = ["mine"]
majority = 1
"""


def test_an_owner_alone_reads_and_loads_the_judges_file(call: Call) -> None:
    alice, owner = admin(), make_user("olivia", is_owner=True)
    here = "collections/c/judges/file"
    assert call(alice, "GET", here).status_code == 403 and call(alice, "POST", here, {"text": ""}).status_code == 403
    loaded = call(owner, "POST", here, {"text": JUDGES})
    assert loaded.status_code == 200 and loaded.json()["changed"] == ["mine"], loaded.content
    assert 'name = "mine"' in call(owner, "GET", here).json()["text"]
    broken = call(owner, "POST", here, {"text": "[[judges]"})
    assert broken.status_code == 422 and "judges.toml" in broken.json()["detail"]
    assert JudgeVersion.objects.filter(name="mine", is_current=True).count() == 1


def test_a_price_is_entered_and_taken_away(call: Call) -> None:
    alice = admin()
    judge = make_judge("kept")
    ensure_offline()
    here = f"collections/c/prices/{judge.pk}"
    before = call(alice, "GET", here)
    changed = call(
        alice, "PATCH", here, {"input_price": 2, "output_price": 8, "note": "invoice"}, **{"If-Match": before["ETag"]}
    )
    assert changed.status_code == 200, changed.content
    assert (changed.json()["input_price"], changed.json()["output_price"]) == (2.0, 8.0)
    half = call(alice, "PATCH", here, {"input_price": 3})
    assert half.status_code == 422 and half.json()["errors"][0]["field"] == "body.output_price"
    assert call(alice, "PATCH", here, {"note": "nothing"}).json()["input_price"] == 2.0
    gone = call(alice, "PATCH", here, {"input_price": None, "output_price": None}).json()
    assert gone["input_price"] == before.json()["input_price"]
    offline = JudgeVersion.objects.get(name=OFFLINE[0], is_current=True)
    fixed = call(alice, "PATCH", f"collections/c/prices/{offline.pk}", {"input_price": 1, "output_price": 1})
    assert fixed.status_code == 422 and "fixed" in fixed.json()["detail"]
    names = {one["judge"] for one in call(alice, "GET", "collections/c/prices?limit=1000").json()["items"]}
    assert {"kept", *OFFLINE} <= names
    assert acts().count("price.changed") == 2


def test_acts_on_pairs_are_planned_run_and_undone(call: Call) -> None:
    alice = admin()
    collection = Collection.objects.get()
    bob = make_member(collection, "bob", Role.ADMIN).user
    pairs = [make_pair(collection).pk for _ in range(3)]
    foreign = make_pair(make_collection("d")).pk
    here = "collections/c/pair-acts"
    planned = call(alice, "POST", here, {"kind": "send", "pairs": [*pairs, foreign]})
    assert planned.status_code == 201, planned.content
    assert (planned.json()["pairs"], planned.json()["count"], planned.json()["state"]) == (3, 3, "planned")
    path = f"{here}/{planned.json()['number']}"
    assert call(bob, "GET", path).status_code == 404 and call(bob, "POST", f"{path}/run", {}).status_code == 404
    done = call(alice, "POST", f"{path}/run", {}).json()
    assert (done["state"], done["count"], done["can_undo"]) == ("done", 3, True)
    assert Item.objects.filter(pair__in=pairs, state="open").count() == 3
    twice = call(alice, "POST", f"{path}/run", {})
    assert twice.status_code == 422 and "already been carried out" in twice.json()["detail"]
    assert call(bob, "POST", f"{path}/undo").json()["state"] == "undone"
    assert not Item.objects.filter(state="open").exists()
    export = call(alice, "POST", here, {"kind": "export", "pairs": pairs}).json()
    assert export["options"] == {"csv": "CSV", "jsonl": "JSON lines"}
    path = f"{here}/{export['number']}"
    assert call(alice, "GET", f"{path}/file").status_code == 422
    assert call(alice, "POST", f"{path}/run", {"option": "xls"}).status_code == 422
    call(alice, "POST", f"{path}/run", {"option": "jsonl"})
    assert len(call(alice, "GET", f"{path}/file").getvalue().splitlines()) == 3
    assert call(alice, "POST", here, {"kind": "send", "pairs": [foreign]}).status_code == 422
    assert call(alice, "POST", here, {"kind": "dance", "pairs": pairs}).status_code == 422
    assert len(call(alice, "GET", here).json()["items"]) == 2
    assert call(alice, "POST", "collections/c/pairs/skipped/adjudicate").json() == {"count": 0}
    assert BulkAct.objects.count() == 2


def test_the_audit_log_is_read_by_act_and_person(call: Call) -> None:
    alice = admin()
    call(alice, "POST", "collections/c/settings/preset", {"preset": "dream"})
    call(alice, "PATCH", "collections/c/settings", {"budget": 5})
    rows = call(alice, "GET", "collections/c/audit-log").json()["items"]
    assert [(one["act"], one["who"]) for one in rows] == [("settings.changed", "alice"), ("settings.money", "alice")]
    only = call(alice, "GET", "collections/c/audit-log?act=settings.money&actor=alice&since=2026-01-01").json()
    assert [one["details"]["budget"] for one in only["items"]] == [5.0]
    assert call(alice, "GET", "collections/c/audit-log?actor=bob").json()["items"] == []
    assert call(alice, "GET", "collections/c/audit-log?act=dance").status_code == 422
    assert call(alice, "GET", "collections/c/audit-log?since=yesterday").status_code == 422


def test_policies_label_errors_and_statistics(call: Call) -> None:
    world = World()
    alice, here = world.people["admin"], "collections/birds"
    found = call(alice, "GET", f"{here}/policies?campaign={world.campaign.number}").json()
    assert found["document"]["campaign"] == world.campaign.number and found["at"] is None
    assert call(alice, "GET", f"{here}/policies?campaign=999999").status_code == 404
    assert call(alice, "POST", f"{here}/policies", {}).json() == {"done": True}
    empty = make_member(make_collection("empty"), "bob", Role.ADMIN).user
    assert "No campaign" in call(empty, "GET", "collections/empty/policies").json()["detail"]
    assert call(alice, "GET", f"{here}/label-errors").json() == {"at": None, "state": "", "suspects": []}
    assert call(alice, "POST", f"{here}/label-errors").json() == {"done": True}
    assert call(alice, "GET", f"{here}/label-errors").json()["at"]
    assert call(alice, "POST", f"{here}/label-errors/cancel").status_code == 422
    assert call(alice, "POST", f"{here}/quality").json() == {"done": True}
    assert {"policies.compared", "statistics.asked"} <= set(acts())


def test_suites_are_made_read_and_deleted_by_who_may_admin_every_collection(call: Call) -> None:
    first, second = make_collection("first"), make_collection("second")
    alice = make_member(first, "alice", Role.ADMIN).user
    make_member(second, "alice", Role.ADMIN)
    bob = make_member(first, "bob", Role.ADMIN).user
    body = {"name": "both", "title": "Both", "members": ["second", "first"]}
    refused = call(bob, "POST", "suites", body)
    assert refused.status_code == 422 and refused.json()["errors"][0]["field"] == "body.members"
    assert call(alice, "POST", "suites", body, collection=first).status_code == 403
    made = call(alice, "POST", "suites", body)
    assert made.status_code == 201 and made.json()["members"] == ["second", "first"], made.content
    path = f"suites/{made.json()['number']}"
    assert call(bob, "GET", path).status_code == 404 and call(bob, "DELETE", path).status_code == 404
    assert call(bob, "GET", "suites").json() == [] and len(call(alice, "GET", "suites").json()) == 1
    assert call(alice, "GET", f"{path}/systems?measure=ndcg").json() == {
        "measure": "ndcg", "members": ["second", "first"], "systems": [],
    }  # fmt: skip
    assert call(alice, "GET", f"{path}/answers").json() == []
    assert call(alice, "GET", f"{path}/systems?measure=luck").status_code == 422
    twice = call(alice, "POST", "suites", body)
    assert twice.status_code == 422 and "already exists" in twice.json()["detail"]
    read = call(alice, "GET", path)
    assert call(alice, "DELETE", path, **{"If-Match": '"other"'}).status_code == 412
    assert call(alice, "DELETE", path, **{"If-Match": read["ETag"]}).status_code == 204
    assert not Suite.objects.exists() and acts() == ["suite.made", "suite.deleted"]


def test_curves_outputs_and_losses(call: Call) -> None:
    world = World()
    alice, here = world.people["admin"], "collections/birds"
    (curve,) = call(alice, "GET", f"{here}/curves").json()["items"]
    assert curve["points"][0]["asked"] == 500 and curve["points"][0]["value"] is None and "not known" in curve["last"]
    path = f"{here}/curves/{world.curve.number}"
    assert call(alice, "POST", f"{path}/cancel").json()["points"][0]["state"] == "cancelled"
    assert call(alice, "POST", f"{path}/cancel").status_code == 422
    refused = call(
        alice, "POST", f"{here}/curves", {"recipe": "prism", "export": 9, "base": "tiny:qwen3", "points": [5]}
    )
    assert refused.status_code == 422 and "training set" in refused.json()["detail"]
    outputs = call(alice, "POST", f"{here}/trainings/{world.job.number}/judge", {"judge": "kept"})
    assert outputs.status_code == 422 and "Only a finished job" in outputs.json()["detail"]
    losses = call(alice, "POST", f"{here}/models/losses", {"model": world.model.pk})
    assert losses.status_code == 422 and losses.json()["errors"][0]["field"] == "body.model"


def upload(client: Client, token: str, path: str, key: str, name: str, text: str, **data: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    files = {"files": SimpleUploadedFile(name, text.encode()), **data}
    return client.post(f"/api/v1/collections/c/{path}", files, headers=headers)


def test_a_file_that_is_sent_twice_with_one_key_is_one_upload(client: Client, settings: Any, tmp_path: Any) -> None:
    settings.VAR = tmp_path
    alice = admin()
    token = make_token(alice, None, name="n", scopes=["manage"], days=1)[1]
    sent = ("imports", "one", "corpus.jsonl", '{"_id": "d", "text": "Text."}\n')
    first, second = (upload(client, token, *sent) for _ in range(2))
    assert first.status_code == 201, first.content
    assert second.content == first.content and second["Idempotent-Replayed"] == "true"
    assert Upload.objects.count() == FileImport.objects.count() == 1
    assert len([path for path in (tmp_path / "uploads").rglob("*") if path.is_file()]) == 1
    for changed in (
        ("imports", "one", "corpus.jsonl", '{"_id": "e", "text": "Text."}\n'),
        ("imports", "one", "other.jsonl", sent[3]),
    ):
        other = upload(client, token, *changed)
        assert other.status_code == 422 and "another request" in other.json()["detail"]
    assert upload(client, token, "imports", "two", *sent[2:]).status_code == 201
    assert FileImport.objects.count() == 2


def test_runs_that_are_sent_twice_with_one_key_are_imported_once(client: Client) -> None:
    alice = admin()
    pair = make_pair(Collection.objects.get())
    token = make_token(alice, None, name="n", scopes=["manage"], days=1)[1]
    line = f"{pair.query.external_id} Q0 {pair.document.external_id} 1 2.5 tag\n"
    answers = [upload(client, token, "runs/import", "k", "mine.run", line, skip_unknown="true") for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 201], answers[0].content
    assert answers[0].json() == answers[1].json() and Run.objects.count() == 1
    other = upload(client, token, "runs/import", "k", "mine.run", line, run="named")
    assert other.status_code == 422 and Run.objects.count() == 1


def test_an_upload_that_cannot_be_read_keeps_no_key(client: Client) -> None:
    alice = admin()
    token = make_token(alice, None, name="n", scopes=["manage"], days=1)[1]
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
    broken = client.generic("POST", "/api/v1/collections/c/imports", b"nothing", "multipart/form-data", headers=headers)
    assert broken.status_code == 400 and broken["Content-Type"] == "application/problem+json"
