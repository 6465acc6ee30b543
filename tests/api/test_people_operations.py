"""What the pages do with people, the API does: quality control, gold, exclusions, aspects and their review."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import AuditEntry, Membership, Role
from annotation.models.quality_control import Batch, Consent
from annotation.quality_control.onboarding import PRACTICE
from corpus.aspects import revising
from corpus.aspects.entries import Wording
from corpus.models import Collection, CurrentJudgment, Item, Label, Target
from corpus.models.aspects import AspectReview
from tests.annotation.judging.test_evidence_pages import PROBLEM, failed_texts
from tests.annotation.quality_control.test_care import make_scene
from tests.annotation.quality_control.test_set_aside import judge
from tests.api.conftest import Call
from tests.aspect_reviews import WHY, decide_all
from tests.aspects_scene import ice_scene
from tests.factories import (
    make_collection,
    make_document,
    make_item,
    make_member,
    make_pair,
    make_query,
    make_user,
)

pytestmark = pytest.mark.django_db


def acts() -> list[str]:
    found = AuditEntry.objects.exclude(act__startswith="token.").order_by("pk")
    return list(found.values_list("act", flat=True))


def test_the_settings_of_quality_control_are_read_and_changed(call: Call) -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    before = call(alice.user, "GET", "collections/c/quality-control")
    assert before.json()["consent"] is None and before.json()["tests"] == []
    done = call(
        alice.user, "PATCH", "collections/c/quality-control", {"checks": 0.2, "batch": 30},
        **{"If-Match": before["ETag"]},
    )  # fmt: skip
    assert done.status_code == 200, done.content
    assert {**before.json(), "checks": 0.2, "batch": 30} == done.json() and acts() == ["settings.changed"]
    stale = {"If-Match": before["ETag"]}
    assert call(alice.user, "PATCH", "collections/c/quality-control", {"checks": 0.1}, **stale).status_code == 412
    for wrong in ({"checks": 0.6}, {"batch": 1}, {"colour": 1}):
        assert call(alice.user, "PATCH", "collections/c/quality-control", wrong).status_code == 422
    written = call(alice.user, "POST", "collections/c/consent", {"text": "What you judge is kept.\x00"}).json()
    assert (written["consent"], written["consent_version"]) == ("What you judge is kept.", 1)
    assert call(alice.user, "POST", "collections/c/consent", {"text": None}).json()["consent"] is None
    assert call(alice.user, "POST", "collections/c/consent", {"text": " "}).status_code == 422
    assert not Consent.objects.exists()


def test_attention_checks_are_made_answered_and_withdrawn(call: Call) -> None:
    collection = make_collection("c")
    make_scene(collection, ordinary=4, known=3)
    alice = make_member(collection, "alice", Role.ADMIN)
    empty = make_collection("empty")
    make_member(empty, "bob", Role.ADMIN)
    pool = call(alice.user, "GET", "collections/c/attention-checks").json()
    assert (pool["standing"], pool["gold"], pool["ordinary"]) == (0, 3, 4) and pool["arguments"]["calls"] >= 0
    key = {"Idempotency-Key": "checks"}
    made = call(alice.user, "POST", "collections/c/attention-checks", {"count": 2, "seed": 1}, **key)
    assert (made.status_code, made.json()) == (201, {"count": 2})
    again = call(alice.user, "POST", "collections/c/attention-checks", {"count": 2, "seed": 1}, **key)
    assert again.json() == {"count": 2} and again["Idempotent-Replayed"] == "true"
    assert Item.objects.filter(reason="check", state="standing").count() == 2
    bob = Membership.objects.get(user__username="bob")
    Batch.objects.create(membership=make_member(collection, "dana"), number=0, size=20, checks=2, missed=1)
    (batch,) = call(alice.user, "GET", "collections/c/batches").json()["items"]
    assert (batch["username"], batch["outcome"], batch["missed"]) == ("dana", "returned", 1)
    assert call(alice.user, "GET", "collections/c/attention-checks").json()["missed"] == 1
    assert call(alice.user, "POST", "collections/c/attention-checks/withdraw").json() == {"count": 2}
    refused = call(bob.user, "POST", "collections/empty/attention-checks", {})
    assert refused.status_code == 422 and "Start a campaign first" in refused.json()["detail"]
    refused = call(bob.user, "POST", "collections/empty/attention-checks/arguments")
    assert refused.status_code == 422 and "No model is configured" in refused.json()["detail"]
    assert {"checks.made", "checks.withdrawn"} <= set(acts())


def test_a_qualification_test_is_made_and_who_failed_is_admitted(call: Call) -> None:
    collection = make_collection("c")
    make_scene(collection, ordinary=0, known=PRACTICE + 2)
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    refused = call(alice.user, "POST", "collections/c/qualification-tests", {"size": 500})
    assert refused.status_code == 422 and "needs" in refused.json()["detail"]
    assert call(alice.user, "POST", "collections/c/qualification-tests", {"size": 2}).json() == {"test": 0}
    assert call(alice.user, "GET", "collections/c/quality-control").json()["tests"] == [0]
    Membership.objects.filter(pk=bob.pk).update(failed_at=timezone.now())
    path = f"collections/c/members/{bob.pk}"
    assert call(alice.user, "GET", path).json()["failed"]
    refused = call(alice.user, "POST", f"{path}/retake")
    assert refused.status_code == 422 and "no other test" in refused.json()["detail"]
    passed = call(alice.user, "POST", f"{path}/pass").json()
    assert passed["qualified"] and not passed["failed"]
    assert call(alice.user, "PATCH", path, {"expert": True}).json()["expert"]
    assert {"qualification.made", "qualification.passed", "member.expert"} <= set(acts())


def test_gold_is_drawn_graded_reviewed_and_ended(call: Call) -> None:
    collection = make_collection("c")
    for _ in range(9):
        make_pair(collection)
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    dana = make_member(collection, "dana", Role.ADJUDICATOR)
    made = call(alice.user, "POST", "collections/c/gold", {"size": 2, "spot": 1.0})
    assert made.status_code == 201 and made.json()["pairs"] == 2, made.content
    number = made.json()["number"]
    refused = call(bob.user, "GET", "collections/c/gold/task")
    assert refused.status_code == 422 and "experts" in refused.json()["detail"]
    call(alice.user, "PATCH", f"collections/c/members/{bob.pk}", {"expert": True})
    task = call(bob.user, "GET", "collections/c/gold/task").json()["task"]
    graded = 0
    while task is not None:
        assert task["debate"] and task["document"]
        body = {"pair": task["pair"], "shown": task["shown"], "grade": 1, "comment": "So."}
        answer = call(bob.user, "POST", "collections/c/gold/task", body)
        assert answer.status_code == 200, answer.content
        task, graded = answer.json()["task"], graded + 1
    assert graded == 7  # five of practice
    progress = call(alice.user, "GET", f"collections/c/gold/{number}").json()
    assert (progress["graded"], progress["relevant"], progress["done"]) == (2, 2, False)
    task = call(dana.user, "GET", "collections/c/gold/review").json()["task"]
    wrong = call(dana.user, "POST", "collections/c/gold/review", {"pair": task["pair"], "grade": 9})
    assert wrong.status_code == 422 and "outside the scale" in wrong.json()["detail"]
    call(dana.user, "POST", "collections/c/gold/review", {"pair": task["pair"], "grade": 0})
    rows = call(alice.user, "GET", f"collections/c/gold/{number}/pairs").json()["items"]
    assert len(rows) == 7
    assert {(one["username"], one["grade"]) for row in rows for one in row["answers"]} == {("bob", 1), ("dana", 0)}
    assert call(alice.user, "POST", f"collections/c/gold/{number}/end").json()["ended_at"]
    assert [one["number"] for one in call(alice.user, "GET", "collections/c/gold").json()["items"]] == [number]
    assert call(alice.user, "GET", f"collections/c/gold/{number + 1}").status_code == 404
    too_many = call(alice.user, "POST", "collections/c/gold", {"size": 5})
    assert too_many.status_code == 422 and "Import more queries" in too_many.json()["detail"]


def test_judgments_are_excluded_from_a_moment_on_and_reinstated_once(call: Call) -> None:
    collection = make_collection("c")
    for _ in range(2):
        make_item(make_pair(collection))
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    judge(bob, [1, 0])
    later = (timezone.now() + timedelta(hours=1)).isoformat()
    refused = call(alice.user, "POST", "collections/c/exclusions", {"member": bob.pk, "since": later})
    assert refused.status_code == 422 and "Nothing to exclude" in refused.json()["detail"]
    naive = call(alice.user, "POST", "collections/c/exclusions", {"member": bob.pk, "since": "2026-01-01T00:00:00"})
    assert naive.status_code == 422
    key = {"Idempotency-Key": "once"}
    body = {"member": bob.pk, "note": "Too fast."}
    made = call(alice.user, "POST", "collections/c/exclusions", body, **key).json()
    assert (made["judgments"], made["note"], made["is_reinstated"]) == (2, "Too fast.", False)
    assert call(alice.user, "POST", "collections/c/exclusions", body, **key).json() == made
    assert not CurrentJudgment.objects.exists()
    path = f"collections/c/exclusions/{made['number']}"
    back = call(alice.user, "POST", f"{path}/reinstate")
    assert back.status_code == 201 and back.json()["reinstates"] == made["number"]
    assert CurrentJudgment.objects.count() == 2 and call(alice.user, "GET", path).json()["is_reinstated"]
    assert call(alice.user, "POST", f"{path}/reinstate").status_code == 422
    assert len(call(alice.user, "GET", "collections/c/exclusions").json()["items"]) == 2
    other = make_member(make_collection("d"), "eve")
    assert call(alice.user, "POST", "collections/c/exclusions", {"member": other.pk}).status_code == 404


def test_aspects_are_revised_and_documents_put_under_them(call: Call) -> None:
    _ice, query, people = ice_scene()
    bob = people["bob"].user
    totals = call(bob, "GET", "collections/ice/aspects/totals").json()
    assert totals == {"queries": 3, "decomposed": 0, "aspects": 0, "reviewed": 0}
    here = f"collections/ice/aspects/{query.pk}"

    def act(name: str, status: int = 200, **body: Any) -> Any:
        answer = call(bob, "POST", f"{here}/{name}", body)
        assert answer.status_code == status, answer.content
        return answer.json()

    act("add", text="Ice flows", rationale=WHY, importance=5, base=0)
    second = act("add", text="Heat melts the base", rationale=WHY)
    assert [(one["id"], one["importance"]) for one in second["aspects"]] == [("a1", 5), ("a2", 3)]
    stale = act("weigh", 422, importances={"a1": 1}, base=1)
    assert "Another person changed" in stale["detail"]
    assert act("weigh", importances={"a2": 5}, base=2)["aspects"][0]["weight"] == 0.5
    act("keep", document="Ice_sheet_0", aspects=["a1"])
    act("keep", document="Ice_sheet_2", aspects=["a2"])
    found = act("discard", document="Ice_sheet_3", reason="Off topic")
    assert found["to_review"] == ["Ice_sheet_1"]
    assert found["discarded"] == [{"document": "Ice_sheet_3", "reason": "Off topic"}]
    assert act("reopen", document="Ice_sheet_3")["discarded"] == []
    assert "No document has the id" in act("keep", 422, document="nothing", aspects=["a1"])["detail"]
    pasted = act("paste", title="New", passage="Ice is slow.", aspects=["a1"], url="https://ice.example/")
    assert len(pasted["aspects"][0]["documents"]) == 2
    act("clarify", aspect="a1", text="Ice creeps", rationale=WHY)
    parts = [{"text": "Stress", "rationale": WHY}, {"text": "Weight", "rationale": WHY}]
    assert [one["id"] for one in act("split", aspect="a1", parts=parts)["aspects"]] == ["a3", "a4", "a2"]
    merged = act("merge", aspects=["a3", "a4"], text="Flow", rationale=WHY)
    assert [one["id"] for one in merged["aspects"]] == ["a5", "a2"]
    undone = act("undo", revision=merged["undoable"])
    assert [one["id"] for one in undone["aspects"]] == ["a3", "a4", "a2"]
    act("remove", aspect="a4")
    assert "no longer exists" in act("remove", 422, aspect="a9")["detail"]
    assert act("dance", 422)["errors"][0]["field"] == "path.act"
    (line,) = call(bob, "GET", "collections/ice/aspects?state=review").json()["items"]
    assert (line["id"], line["aspects"]) == ("q1", 2)
    lines = call(bob, "POST", "collections/ice/aspects/export").getvalue().decode().splitlines()
    assert len(lines) == 2 and "aspects.exported" in acts()
    assert call(people["alice"].user, "GET", here).status_code == 403
    assert call(bob, "GET", "collections/ice/aspects/999999").status_code == 404


def test_a_second_person_reviews_aspects_step_by_step_and_sees_no_weights_first(call: Call) -> None:
    _ice, query, people = ice_scene()
    decide_all(query, people["bob"])
    dana = people["dana"].user
    review = call(dana, "POST", "collections/ice/aspect-reviews/claim").json()
    here = f"collections/ice/aspect-reviews/{review['number']}"
    assert (review["step"], review["mine"], review["said"], review["documents"]) == ("weights", True, {}, [])
    assert {(one["importance"], one["first"]) for one in review["aspects"]} == {(None, None)}
    hidden = call(dana, "GET", f"collections/ice/aspects/{query.pk}")
    assert hidden.status_code == 422 and "your own weights first" in hidden.json()["detail"]
    early = call(dana, "POST", f"{here}/aspects", {"base": review["base"], "criteria": {}})
    assert early.status_code == 422
    review = call(dana, "POST", f"{here}/weights", {"importances": {"a1": 4, "a2": 4}}).json()
    assert review["step"] == "aspects" and {one["first"] for one in review["aspects"]} == {5, 3}
    agreed = {name: {"accept": True} for name in ("granularity", "balance", "coverage")}
    criteria = {**agreed, "weights": {"accept": False, "reason": "Both matter."}}
    body = {"base": review["base"], "criteria": criteria, "importances": {"a1": 4, "a2": 4}}
    answer = call(dana, "POST", f"{here}/aspects", body)
    assert answer.status_code == 200, answer.content
    review = answer.json()
    assert review["step"] == "documents" and len(review["documents"]) == 5
    review = call(dana, "POST", f"{here}/undo").json()
    assert review["step"] == "aspects"
    review = call(dana, "POST", f"{here}/aspects", {**body, "base": review["base"]}).json()
    said = [{"document": one["document"], "aspect": one["aspect"], "accept": True} for one in review["documents"]]
    lost = {"base": review["base"], "decisions": [{"document": "nothing", "accept": True}]}
    assert call(dana, "POST", f"{here}/documents", lost).status_code == 422
    answer = call(dana, "POST", f"{here}/documents", {"base": review["base"], "decisions": said})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["state"], answer.json()["accepted"], answer.json()["step"]) == ("submitted", False, "")
    assert set(answer.json()["said"]) == {"weights", "aspects", "documents"}
    (row,) = call(dana, "GET", "collections/ice/aspect-reviews").json()["items"]
    assert (row["query"], row["reviewer"]) == ("q1", "dana")
    none = call(dana, "POST", "collections/ice/aspect-reviews/claim")
    assert none.status_code == 422 and "No query is waiting" in none.json()["detail"]


def test_who_reviews_a_query_changes_nothing_of_it_before_their_own_weights(call: Call) -> None:
    _ice, query, people = ice_scene()
    decide_all(query, people["bob"])
    dana = people["dana"].user
    call(dana, "POST", "collections/ice/aspect-reviews/claim")
    before = revising.newest_revision(query)
    refused = call(dana, "POST", f"collections/ice/aspects/{query.pk}/weigh", {"importances": {"a1": 1}})
    assert refused.status_code == 422 and "your own weights first" in refused.json()["detail"]
    assert revising.newest_revision(query) == before and "aspects.revised" not in acts()


def test_a_review_is_released_by_its_own_reviewer_alone(call: Call) -> None:
    _ice, query, people = ice_scene()
    decide_all(query, people["bob"])
    number = call(people["dana"].user, "POST", "collections/ice/aspect-reviews/claim").json()["number"]
    here = f"collections/ice/aspect-reviews/{number}"
    assert call(people["charlie"].user, "POST", f"{here}/release").status_code == 404
    assert call(people["charlie"].user, "GET", here).json()["mine"] is False
    assert call(people["dana"].user, "POST", f"{here}/release").json()["state"] == "released"
    assert AspectReview.objects.get().state == "released"


def test_a_blind_sample_is_drawn_and_weighed_by_somebody_else(call: Call) -> None:
    _ice, query, people = ice_scene()
    dana = people["dana"].user
    here = "collections/ice/aspects/sample"
    assert call(dana, "GET", here).json() == {"drawn": 0, "agreement": None}
    assert call(dana, "POST", here, {"size": 5}).status_code == 422
    assert call(dana, "POST", f"{here}/task", {"revision": 1, "importances": {}}).status_code == 422
    for text in ("Flow", "Melting"):
        revising.add_aspect(query, people["bob"].assessor, Wording(text, WHY))
    assert call(dana, "POST", here, {"size": 5}).json()["drawn"] == 1
    task = call(dana, "GET", f"{here}/task").json()
    assert (task["query"], task["weighed"], task["drawn"], len(task["aspects"])) == ("q1", 0, 1, 2)
    assert call(people["bob"].user, "GET", f"{here}/task").json()["revision"] is None  # his own
    body = {"revision": task["revision"], "importances": {"a1": 5, "a2": 2}, "comment": "Flow first."}
    done = call(dana, "POST", f"{here}/task", body).json()
    assert (done["revision"], done["weighed"]) == (None, 1)
    found = call(dana, "GET", here).json()["agreement"]
    assert found["aspects"] == 2 and found["percent"]["value"] == 0.0


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


def test_near_duplicates_and_a_paired_study(call: Call) -> None:
    collection = make_collection("c")
    make_scene(collection, ordinary=3, known=0)
    alice = make_member(collection, "alice", Role.ADMIN)
    people = [make_member(collection, name) for name in ("bob", "charlie")]
    found = call(alice.user, "GET", "collections/c/near-duplicates").json()
    assert found["groups"] == [] and call(alice.user, "POST", "collections/c/near-duplicates").json() == {"done": True}
    body = {"people": [one.pk for one in people], "pairs": 2, "overlap": 1, "gold": False}
    wrong = call(alice.user, "POST", "collections/c/studies", {**body, "people": [10**9]})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.people"
    made = call(alice.user, "POST", "collections/c/studies", body)
    assert made.status_code == 201, made.content
    path = f"collections/c/studies/{made.json()['number']}"
    assert call(alice.user, "GET", path).json()["pairs"] == 2
    effect = call(alice.user, "GET", "collections/c/debate-effect?since=2026-01-01").json()["document"]
    assert [one["study"] for one in effect["studies"]] == [made.json()["number"]]
    assert call(alice.user, "POST", f"{path}/end").json()["ended_at"]
    assert len(call(alice.user, "GET", "collections/c/studies").json()["items"]) == 1
    assert {"study.made", "study.ended"} <= set(acts())


def test_an_owner_joins_a_collection_to_judge(call: Call) -> None:
    make_collection("c")
    owner = make_user("olivia", is_owner=True)
    joined = call(owner, "POST", "collections/c/members/join")
    assert joined.status_code == 201 and joined.json()["role"] == "admin"
    again = call(owner, "POST", "collections/c/members/join")
    assert again.status_code == 422 and "already a member" in again.json()["detail"]
    assert Collection.objects.get().memberships.count() == 1
