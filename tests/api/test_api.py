"""The REST API: who may call what, tasks, campaigns, exports, requests sent again, problems."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.exports.snapshots import write_snapshot
from annotation.models import AuditEntry, Membership, Role, User
from annotation.models.imports import FileImport
from annotation.models.snapshots import Snapshot
from api.idempotency import delete_old_answers
from api.models import AccessToken, IdempotentAnswer
from api.tokens import digest_of, make_token, revoke_token
from corpus.models import Collection, CurrentJudgment, Judgment
from judges.models import Campaign
from tests.api.conftest import Call
from tests.factories import make_collection, make_item, make_member, make_pair, make_user
from tests.imported_files import work_off

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> Membership:
    """An admin of the collection c."""
    return make_member(make_collection("c"), "alice", Role.ADMIN)


def test_a_token_is_stored_as_its_hash_only_and_logged() -> None:
    alice = make_member(make_collection("c"), "alice")
    row, token = make_token(alice.user, alice.collection, name="n", scopes=["read"], days=1)
    assert row.digest == digest_of(token) and token.startswith("quorum_") and len(token) > 45
    assert not [field for field in AccessToken._meta.fields if token in str(getattr(row, field.attname))]
    entry = AuditEntry.objects.get(act="token.made")
    assert token not in json.dumps(entry.details) and entry.person == alice.user


def test_no_token_a_wrong_one_a_revoked_one_an_expired_one_and_a_closed_account_are_401(alice, call, client):
    row, token = make_token(alice.user, None, name="n", scopes=["read"], days=1)

    def ask(value: str) -> int:
        answer = client.get("/api/v1/collections", headers={"Authorization": value})
        if answer.status_code == 401:
            assert answer["Content-Type"] == "application/problem+json" and answer["WWW-Authenticate"] == "Bearer"
        return answer.status_code

    assert call(None, "GET", "collections").status_code == 401
    for wrong in ("Bearer quorum_wrong", f"Basic {token}"):
        assert ask(wrong) == 401
    assert ask(f"Bearer {token}") == 200
    for is_active, status in ((False, 401), (True, 200)):
        User.objects.update(is_active=is_active)
        assert ask(f"Bearer {token}") == status
    now = timezone.now()
    for expires_at, status in ((now - timedelta(seconds=1), 401), (now + timedelta(days=1), 200)):
        AccessToken.objects.update(expires_at=expires_at)
        assert ask(f"Bearer {token}") == status
    revoke_token(row)
    assert ask(f"Bearer {token}") == 401


def test_a_token_of_a_collection_reaches_no_other_and_makes_none(call: Call) -> None:
    """Roles and scopes: test_api_permissions."""
    first, second = make_collection("first"), make_collection("second")
    admin = make_member(first, "alice", Role.ADMIN)
    make_member(second, "alice", Role.ADMIN)
    here: dict[str, Any] = {"collection": first}
    assert call(admin.user, "GET", "collections/first/pairs", **here).status_code == 200
    assert call(admin.user, "GET", "collections/second/pairs", **here).status_code == 404
    assert [row["name"] for row in call(admin.user, "GET", "collections", **here).json()] == ["first"]
    assert [row["name"] for row in call(admin.user, "GET", "collections").json()] == ["first", "second"]
    owner, body = make_user("olivia", is_owner=True), {"name": "new", "grades": 1}
    assert call(owner, "POST", "collections", body, **here).status_code == 403
    made = call(owner, "POST", "collections", body)
    assert made.status_code == 201 and made.json()["grades"] == 1
    again = call(owner, "POST", "collections", body)
    assert again.status_code == 422 and "already exists" in again.json()["detail"]


def test_pages_of_a_list_follow_each_other_without_gap(alice: Membership, call: Call) -> None:
    made = {make_pair(alice.collection).pk for _ in range(5)}
    listed, after = [], 0
    while after is not None:
        page = call(alice.user, "GET", f"collections/c/pairs?limit=2&after={after}").json()
        assert len(page["items"]) <= 2
        listed += [row["number"] for row in page["items"]]
        after = page["next"]
    assert listed == sorted(made)
    assert call(alice.user, "GET", "collections/c/pairs?limit=0").status_code == 422


def test_a_person_claims_judges_takes_back_and_skips(call: Call) -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice")
    for _ in range(3):
        make_item(make_pair(collection))
    assert call(alice.user, "GET", "collections/c/task").json()["task"] is None
    desk = call(alice.user, "POST", "collections/c/task/claim").json()
    task = desk["task"]
    assert task["asks"] == "grade" and task["highest_grade"] == 1 and task["document"]
    body = {"item": task["item"], "token": task["token"], "grade": 1, "comment": "Yes.", "spans": [[2, 9]]}
    following = call(alice.user, "POST", "collections/c/task/judge", body).json()
    assert following["judged_today"] == 1 and following["task"]["item"] != task["item"]
    judgment = CurrentJudgment.objects.get()
    assert (judgment.grade, judgment.comment) == (1, "Yes.") and Judgment.objects.get().spans == [[2, 9]]
    # The same token again changes nothing.
    assert call(alice.user, "POST", "collections/c/task/judge", body).status_code == 200
    assert Judgment.objects.count() == 1
    assert call(alice.user, "POST", "collections/c/task/judge", body | {"grade": 0}).status_code == 409
    back = call(alice.user, "POST", "collections/c/task/undo", {"item": task["item"]}).json()
    assert back["task"]["item"] == task["item"] and not CurrentJudgment.objects.exists()
    skip = {"item": task["item"], "token": back["task"]["token"], "reason": "other"}
    assert call(alice.user, "POST", "collections/c/task/skip", skip).status_code == 200
    wrong = call(alice.user, "POST", "collections/c/task/skip", {"item": 1, "token": "t", "reason": "boredom"})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.reason"


def test_a_wrong_judgment_is_refused_and_saves_nothing(call: Call) -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice")
    make_item(make_pair(collection))
    task = call(alice.user, "POST", "collections/c/task/claim").json()["task"]
    right = {"item": task["item"], "token": task["token"], "grade": 1}
    for wrong, status in (
        ({"grade": 2}, 422),  # beyond the scale
        ({"spans": [[5, 2]]}, 422),
        ({"spans": [[0, 5], [3, 8]]}, 422),
        ({"item": 12345}, 404),  # never lent
        ({"token": "other"}, 409),
        ({"item": 1 << 70}, 422),
    ):
        answer = call(alice.user, "POST", "collections/c/task/judge", right | wrong)
        assert answer.status_code == status and answer["Content-Type"] == "application/problem+json", wrong
        assert answer.json()["detail"] and not Judgment.objects.exists()


def test_a_request_with_a_key_happens_once_for_who_may_ask(alice: Membership, call: Call) -> None:
    make_pair(alice.collection)
    path, ask, key = "collections/c/exports", {"format": "csv", "origins": None}, {"Idempotency-Key": "one"}
    assert call(alice.user, "POST", path, {"format": "no"}, **key).status_code == 422
    assert not IdempotentAnswer.objects.exists(), "a refused request keeps no answer, so its key may be used again"
    first, again = (call(alice.user, "POST", path, ask, **key) for _ in range(2))
    assert first.status_code == again.status_code == 201, first.content
    assert first.json() == again.json() and again["Idempotent-Replayed"] == "true" and Snapshot.objects.count() == 1
    other = call(alice.user, "POST", path, {"format": "qrels"}, **key)
    assert other.status_code == 422 and "another request" in other.json()["detail"]
    call(alice.user, "POST", path, ask, **{"Idempotency-Key": "two"})
    assert Snapshot.objects.count() == 2
    IdempotentAnswer.objects.filter(key="two").update(created_at=timezone.now() - timedelta(days=31))
    assert delete_old_answers() == 1 and IdempotentAnswer.objects.get().key == "one"
    alice.role = Role.ANNOTATOR
    alice.save()
    refused = call(alice.user, "POST", path, ask, **key)
    assert refused.status_code == 403 and "Idempotent-Replayed" not in refused


def test_of_two_who_make_a_collection_of_one_name_at_once_the_second_is_refused(call, monkeypatch):
    make_collection("c")
    # The other request stored it after this one had looked.
    monkeypatch.setattr(Collection, "full_clean", lambda self: None)
    refused = call(make_user("olga", is_owner=True), "POST", "collections", {"name": "c"})
    assert refused.status_code == 409 and "someone else" in refused.json()["detail"].lower()
    assert Collection.objects.count() == 1


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "one"}], ids=["without a key", "with a key"])
def test_a_body_that_is_not_read_is_refused_as_a_problem(alice, call, client, settings, key):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    large = call(alice.user, "POST", "collections/c/exports", {"format": "csv", "origins": ["x" * 2_000]}, **key)
    assert large.status_code == 413 and large["Content-Type"] == "application/problem+json"
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 2
    _row, token = make_token(alice.user, None, name="n", scopes=["manage"], days=1)
    files = [SimpleUploadedFile(f"{n}.jsonl", b"{}") for n in range(3)]
    headers = {"Authorization": f"Bearer {token}", **key}
    many = client.post("/api/v1/collections/c/imports", {"files": files}, headers=headers)
    assert many.status_code == 422 and "2 files" in many.json()["detail"]
    assert not FileImport.objects.exists()


def test_a_campaign_is_estimated_started_read_and_cancelled(alice: Membership, call: Call) -> None:
    for _ in range(3):
        make_pair(alice.collection)
    here = "collections/c/campaigns"
    expected = call(alice.user, "POST", f"{here}/estimate", {"policy": "human"})
    assert expected.status_code == 200 and expected.json()["pairs"] == 3, expected.content
    assert (expected.json()["calls"], Campaign.objects.count()) == (0, 0)
    started = call(alice.user, "POST", here, {"policy": "human", "limit": 2}).json()
    assert started["added"] == 2
    path = f"{here}/{started['campaign']}"
    assert call(alice.user, "GET", path).json()["status"]["pairs"] == 2
    for act, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert call(alice.user, "POST", f"{path}/{act}").json()["state"] == state
    refused = call(alice.user, "POST", f"{path}/pause")
    assert refused.status_code == 422 and refused.json()["detail"]
    assert call(alice.user, "GET", f"{here}/999999").status_code == 404


def test_too_many_requests_in_a_minute_are_429(call: Call, settings: Any) -> None:
    settings.API_PER_MINUTE = 2
    alice = make_member(make_collection("c"), "alice")
    statuses = [call(alice.user, "GET", "collections").status_code for _ in range(4)]
    assert statuses.count(429) >= 1 and statuses[:2] == [200, 200]
    last = call(alice.user, "GET", "collections")
    assert last.status_code != 429 or 0 < int(last["Retry-After"]) <= 60


def test_a_token_is_made_on_the_page_shown_once_and_revoked(client: Client, call: Call) -> None:
    alice = make_member(make_collection("c"), "alice")
    client.force_login(alice.user)
    made = client.post(
        "/accounts/tokens/", {"token_name": "notebook", "scopes": ["read"], "days": 30, "collection": "c"}
    )
    row = AccessToken.objects.get()
    assert row.collection == alice.collection and row.name == "notebook"
    page = client.get("/accounts/tokens/").text
    assert "quorum_" in made.text and "quorum_" not in page and 'href="/api-reference/"' in page
    bob = make_user("bob")
    client.force_login(bob)
    assert client.post(f"/accounts/tokens/{row.pk}/revoke/").status_code == 404
    client.force_login(alice.user)
    client.post(f"/accounts/tokens/{row.pk}/revoke/")
    row.refresh_from_db()
    assert row.revoked_at is not None
    entries = AuditEntry.objects.filter(act__startswith="token.").order_by("pk")
    assert [entry.act for entry in entries] == ["token.made", "token.revoked"]
    for wrong in ({"scopes": []}, {"scopes": ["all"]}, {"days": 0}, {"days": 367}):
        asked = {"token_name": "x", "scopes": ["read"], "days": 1, **wrong}
        assert client.post("/accounts/tokens/", asked).status_code == 422, wrong
    assert AccessToken.objects.count() == 1


def test_files_are_uploaded_checked_and_imported(alice: Membership, call: Call, client: Client) -> None:
    """Their correction: tests/client/test_client.py."""
    _row, token = make_token(alice.user, None, name="n", scopes=["manage", "read"], days=1)
    headers = {"Authorization": f"Bearer {token}"}
    lines = [json.dumps({"_id": f"d{n}", "text": "A mapping " * 100}) for n in range(1_500)]
    documents = SimpleUploadedFile("documents.jsonl", "\n".join(lines).encode())  # above what a stranger may send
    queries = SimpleUploadedFile("queries.jsonl", b'{"_id": "q1", "text": "What is a mapping?"}\n')
    sent = client.post("/api/v1/collections/c/imports", {"files": [documents, queries]}, headers=headers)
    assert sent.status_code == 201, sent.content
    number = sent.json()["number"]
    path = f"collections/c/imports/{number}"
    assert call(alice.user, "POST", f"{path}/start").status_code == 422, "it is not checked"
    work_off()
    checked = call(alice.user, "GET", path).json()
    assert checked["checked"] and not checked["imported"], checked["error"]
    assert {file["name"]: file["kind"] for file in checked["files"]} == {
        "documents.jsonl": "documents",
        "queries.jsonl": "queries",
    }
    options = {"query_ids": "position", "graded_by": "human", "kinds": {"queries.jsonl": "queries"}, "bm25": 2}
    assert call(alice.user, "POST", f"{path}/options", options).status_code == 200
    assert FileImport.objects.get(number=number).options["query_ids"] == "position"
    assert call(alice.user, "POST", f"{path}/options", {"graded_by": "ghosts"}).status_code == 422
    unknown = call(alice.user, "POST", f"{path}/options", {"kinds": {"qrels.txt": "skip"}})
    assert unknown.status_code == 422 and "qrels.txt" in unknown.json()["detail"]
    work_off()
    assert call(alice.user, "POST", f"{path}/start").status_code == 200
    work_off()
    done = call(alice.user, "GET", path).json()
    assert done["imported"], done["error"]
    page = call(alice.user, "GET", "collections/c/documents?limit=1000").json()
    assert len(page["items"]) == 1_000 and page["items"][0]["id"] == "d0" and page["next"]


def test_a_large_body_without_a_valid_token_is_refused_unread(client: Client) -> None:
    sent = {"content_type": "application/json", "headers": {"Authorization": "Bearer quorum_x"}}
    answer = client.post("/api/v1/collections/c/task/judge", b"x" * 1_500_000, **sent)
    assert answer.status_code == 413 and answer["Content-Type"] == "application/problem+json"


@pytest.mark.django_db(transaction=True)
def test_an_export_with_a_key_is_of_one_moment(alice: Membership, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = []

    def write(snapshot: Snapshot) -> Snapshot:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            levels.append(cursor.fetchone()[0])
        return write_snapshot(snapshot)

    monkeypatch.setattr("annotation.exports.services.write_snapshot", write)
    first = call(alice.user, "POST", "collections/c/exports", {"format": "csv"}, **{"Idempotency-Key": "one"})
    assert levels == ["repeatable read"] and first.status_code == 201, first.content


def test_half_a_surrogate_pair_which_nothing_can_store_is_refused_as_no_json(alice: Membership, call: Call) -> None:
    for method, path, body in (
        ("POST", "collections/c/invitations", {"role": "annotator", "email": "\ud800@example.org"}),
        ("PATCH", "collections/c/settings", {"title": "\ud800"}),
    ):
        answer = call(alice.user, method, path, body)
        assert answer.status_code == 400 and answer["Content-Type"] == "application/problem+json", path
        assert "parse request body" in answer.json()["detail"], path
    # A whole pair is a character as any other.
    assert call(alice.user, "PATCH", "collections/c/settings", {"title": "\U0001f600"}).status_code == 200
