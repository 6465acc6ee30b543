"""The API, walked: every operation as everybody who may come along, with a token for everything."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from django.test import Client
from ninja.operation import Operation

from annotation.access.permissions import ALLOWED
from api.authentication import AccessTokenAuth
from api.tokens import make_token
from api.urls import api
from corpus.access import needed_action
from tests.site.test_permissions import QUICK, ROLE, WHO, World

pytestmark = pytest.mark.django_db
MISSING = "Collection not found."
HERE = "/collections/{slug:name}"
SITE = {"GET /collections": "site", "POST /collections": "own-site", f"GET {HERE}": "member"}
# By the first word below the collection; everything else is for its admins.
ACTIONS = {"task": "judge", "compare": "judge", "conflict": "adjudicate"}
# What viewers read, without names of people.
RESULTS = {"queries", "documents", "pairs", "campaigns", "agreement", "agreement.csv", "audits", "quality"}
RESULTS |= {"leaderboard", "reports", "gates"}


class Door(NamedTuple):
    """An operation with its address filled in, and what its token and its person need."""

    method: str
    path: str
    action: str
    scope: str


def operations() -> Iterator[tuple[str, Operation]]:
    """Each operation with its address below the API's."""
    for _prefix, router in api._routers:
        for path, view in router.path_operations.items():
            yield from ((path, operation) for operation in view.operations)


def doors(world: World) -> Iterator[Door]:
    filled = {
        "{slug:name}": "birds",
        "campaigns/{number}": f"campaigns/{world.campaign.number}",
        "pairs/{number}": f"pairs/{world.pair.pk}",
        "reports/{number}": f"reports/{world.report.number}",
        "imports/{number}": f"imports/{world.file_import.number}",
        "uploads/{number}": f"uploads/{world.upload.pk}",
        "exports/{number}": "exports/1",
        "invitations/{number}": f"invitations/{world.invitation.pk}",
        "audits/{number}": f"audits/{world.campaign.number}",
        "runs/{number}": f"runs/{world.run.pk}",
        "hole-fillings/{number}": f"hole-fillings/{world.filling.number}",
        "pair-acts/{number}": f"pair-acts/{world.bulk.number}",
        "members/{number}": f"members/{world.bystander.pk}",
        "qrels/{number}": f"qrels/{world.qrels.number}",
        "trainings/{number}": f"trainings/{world.job.number}",
        "models/{number}/{act}": f"models/{world.model.pk}/evaluate",
        "models/{number}": f"models/{world.model.pk}",
        "webhooks/{number}": f"webhooks/{world.webhook.number}",
        "campaigns/1/{act}": "campaigns/1/pause",
        "comparisons/{number}": "comparisons/1",
        "{act}": "cancel",
        "{path:file}": "labels.csv",
    }
    for path, operation in operations():
        for key, value in filled.items():
            path = path.replace(key, value)
        assert "{" not in path, f"tell this test what stands in {path}"
        (door,) = operation.auth_callbacks
        assert isinstance(door, AccessTokenAuth)
        for method in operation.methods:
            yield Door(method, f"/api/v1{path}", door.action, door.scope)


def expected(door: Door, who: str) -> str:
    """What the door says: 401, 403, 404 (of the collection), or in."""
    if who == "visitor":
        return "401"
    if door.action in ("site", "own-site"):
        return "in" if door.action == "site" or who == "owner" else "403"
    if who in ("stranger", "outsider"):
        return "404"
    if who == "owner":
        return "403" if door.action in ("judge", "adjudicate") else "in"
    return "in" if ROLE[who] in ALLOWED[needed_action(door.action, door.method)] else "403"  # type: ignore[arg-type]


def said(answer: Any) -> str:
    if answer.status_code in (401, 403):
        return str(answer.status_code)
    missing = answer.status_code == 404 and answer.json()["detail"] == MISSING
    return "404" if missing else "in"


@pytest.mark.parametrize("who", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WHO])
def test_every_operation_as_everybody(who: str, settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world, client, headers = World(), Client(), {}
    if who != "visitor":
        token = make_token(world.people[who], None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
        headers = {"Authorization": f"Bearer {token}"}
    every = list(doors(world))
    assert len(every) > 90
    wrong = []
    for door in every:
        if door.method == "HEAD":  # its answer has no content that would tell one 404 from another: test_api_uploads
            continue
        answer = client.generic(door.method, door.path, headers=headers)
        if said(answer) != expected(door, who):
            wrong.append((door, who, answer.status_code))
    assert wrong == []


def test_no_operation_runs_without_the_scope_of_its_token(settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world, client = World(), Client()
    for scope in ("read", "judge", "manage"):
        token = make_token(world.people["admin"], None, name="n", scopes=[scope], days=1)[1]
        for door in doors(world):
            if door.scope == scope:
                continue
            answer = client.generic(door.method, door.path, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 403, (door, scope, answer.content[:200])


def test_reading_asks_for_no_more_than_the_scope_read() -> None:
    world = World()
    judging = {door.path for door in doors(world) if door.method == "GET" and door.scope != "read"}
    here = "/api/v1/collections/birds"
    # A pair that is held is somebody's work.
    assert judging == {f"{here}/{task}" for task in ("task", "conflict")}
    assert {door.scope for door in doors(world) if door.method == "POST"} == {"read", "judge", "manage"}
    assert {door.scope for door in doors(world) if door.method in ("PATCH", "DELETE")} == {"manage"}
    only_read = {door.path for door in doors(world) if door.method == "POST" and door.scope == "read"}
    assert only_read == {f"{here}/{one}/estimate" for one in ("campaigns", "runs", "hole-fillings")}


def test_the_api_is_for_programs_and_stays_small() -> None:
    document = Client().get("/api/v1/openapi.json").json()
    assert sum(len(methods) for methods in document["paths"].values()) <= 110


def test_an_operation_asks_for_the_role_of_its_page() -> None:
    for path, operation in operations():
        (door,) = operation.auth_callbacks
        assert isinstance(door, AccessTokenAuth)
        word = path.removeprefix(f"{HERE}/").partition("/")[0]
        for method in operation.methods:
            other = "results" if method == "GET" and word in RESULTS else "admin"
            assert door.action == SITE.get(f"{method} {path}", ACTIONS.get(word, other)), (method, path)


def test_operations_stand_in_their_rooms() -> None:
    for path, operation in operations():
        module = operation.view_func.__module__
        assert module.startswith("api.") or (module.count(".") in (2, 3) and module.endswith(".api")), (path, module)
