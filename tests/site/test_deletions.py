"""What is deleted while others use it: each of them is answered, none with an error of ours."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from annotation.data.imports import uploads
from annotation.models import Membership, Role, User
from annotation.models.aspects import PassageDraft
from annotation.models.imports import FileImport
from annotation.models.pair_table import SavedView
from annotation.models.snapshots import QuerySplit
from annotation.people.accounts import members
from api.models import Webhook, WebhookDelivery
from api.tokens import make_token
from benchmark.models import Ranking, Run, Suite, SuiteMember
from corpus.collections.removal import delete_collection
from tests.api.test_api_permissions import doors
from tests.site.test_permissions import World, routes

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
AT_ONCE = 8
ROUNDS = 4
API = "/api/v1/collections/birds"
TUS = {"HTTP_TUS_RESUMABLE": "1.0.0", "HTTP_UPLOAD_OFFSET": "0", "content_type": "application/offset+octet-stream"}
numbers = count(1)


@dataclass(frozen=True)
class Request:
    """A request of the API (a body is JSON) or of a page (a body is a form)."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Crowd:
    """Threads that send requests at the same moment, as one person: the API's with a token, the pages' signed in."""

    def __init__(self, person: User) -> None:
        self.person, self.answers = person, Counter[tuple[str, int]]()
        self.faults: list[str] = []
        self.token = make_token(person, None, name="crowd", scopes=["read", "judge", "manage"], days=1)[1]
        session = Client()
        session.force_login(person)
        self.cookies = session.cookies
        self.pool = ThreadPoolExecutor(AT_ONCE)

    def send(self, request: Request) -> Any:
        client, data = Client(raise_request_exception=False), request.body
        if not request.path.startswith("/api/"):
            client.cookies = self.cookies
            return client.get(request.path) if request.method == "GET" else client.post(request.path, data or {})
        options: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {self.token}", **request.headers}
        if not isinstance(data, bytes):
            options.setdefault("content_type", "application/json")
            data = "" if data is None else json.dumps(data)
        return client.generic(request.method, request.path, data, **options)

    def at_once(self, requests: list[Request]) -> None:
        """Send these side by side; each answer is counted, and what is no answer is kept."""
        gate = Barrier(len(requests))

        def ask(request: Request) -> None:
            gate.wait()
            answer = self.send(request)
            self.answers[request.method, answer.status_code] += 1
            is_problem = answer.headers.get("Content-Type", "").startswith("application/problem+json")
            is_wrong = request.path.startswith("/api/") and answer.status_code >= 400 and not is_problem
            if answer.status_code >= 500 or is_wrong:
                why = getattr(answer, "exc_info", None)
                text = repr(why[1])[:200] if why else answer.content[:200]
                self.faults.append(f"{request.method} {request.path}: {answer.status_code} {text}")

        list(self.pool.map(ask, requests))

    def end(self) -> None:
        gate = Barrier(AT_ONCE)

        def close(_number: int) -> None:
            gate.wait()
            connection.close()

        list(self.pool.map(close, range(AT_ONCE)))
        self.pool.shutdown()


@pytest.fixture
def crowd(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    settings.API_PER_MINUTE = 1_000_000
    for name in ("api.problems", "config.races"):
        monkeypatch.setattr(logging.getLogger(name), "disabled", True)
    crowd = Crowd(world.people["owner"])
    yield crowd
    crowd.end()


Kind = tuple[list[Request], list[Request]]


def webhook(world: World) -> Kind:
    about = {"url": "https://ice.example/h", "events": ["export.ready"], "made_by": world.people["admin"]}
    row = Webhook.objects.create(collection=world.collection, **about)
    failed = WebhookDelivery.objects.create(webhook=row, event="export.ready", subject="export:1", state="failed")
    here, page = f"{API}/webhooks/{row.number}", f"/c/birds/webhooks/{row.number}/"
    uses = [
        *(Request("PATCH", here, body) for body in ({"active": False}, {"active": True}, {"description": "d"})),
        *(Request("GET", path) for path in (here, f"{here}/deliveries", page)),
        *(Request("POST", f"{here}/{act}", None) for act in ("secret", "test")),
        *(Request("POST", f"{here}/replay", body) for body in ({}, {"delivery": failed.pk})),
        Request("POST", page, {"url": "https://ice.example/i", "events": ["export.ready"], "description": ""}),
        *(Request("POST", f"{page}{act}/") for act in ("test", "secret", "enable", "disable", "replay-failed")),
    ]
    return [Request("DELETE", here), Request("POST", f"{page}delete/")], uses


def suite(world: World) -> Kind:
    row = Suite.objects.create(name=f"suite-{next(numbers)}")
    SuiteMember.objects.create(suite=row, collection=world.collection, place=1)
    page = f"/suites/{row.pk}/"
    return [Request("POST", f"{page}delete/")], [Request("GET", page), Request("POST", f"{page}compute/")]


def query_list(world: World) -> Kind:
    name, query, page = f"list-{next(numbers)}", world.pair.query.external_id, "/c/birds/exports/lists/"
    QuerySplit.objects.create(collection=world.collection, name=name, query_ids=[query])
    uses = [Request("GET", page), Request("POST", page, {"name": name, "ids": query})]
    return [Request("POST", f"{page}{name}/delete/")], uses


def run(world: World) -> Kind:
    row = Run.objects.create(collection=world.collection, name=f"run-{next(numbers)}", kind="bm25", state="ready")
    Ranking.objects.create(run=row, query=world.pair.query, documents=[world.pair.document_id], scores=[1.0])
    here, page = f"{API}/runs/{row.pk}", f"/c/birds/benchmark/runs/{row.pk}/"
    uses = [
        *(Request("GET", path) for path in (here, f"{here}/file", page)),
        *(Request("POST", path) for path in (f"{here}/cancel", f"{here}/go-on", f"{page}cancel/")),
        Request("POST", f"{API}/leaderboard", {"runs": [row.pk]}),
    ]
    return [Request("DELETE", here), Request("POST", f"{page}delete/")], uses


def invitation(world: World) -> Kind:
    row = members.invite(collection=world.collection, role=Role.ANNOTATOR, author=world.people["owner"])
    here = f"{API}/invitations/{row.pk}"
    joining = {"username": f"new-{next(numbers)}", "password1": "a long password 1", "password2": "a long password 1"}
    link = f"/invitations/{row.token}/"
    uses = [Request("GET", here), Request("GET", f"{API}/invitations"), Request("POST", link, joining)]
    return [Request("DELETE", here), Request("POST", f"/c/birds/invitations/{row.pk}/revoke/")], uses


def upload(world: World) -> Kind:
    row = uploads.begin_upload(world.collection, world.people["owner"], "corpus.jsonl", 9)
    here = f"{API}/uploads/{row.pk}"
    uses = [
        Request("PATCH", here, b"{}\n{}\n{}\n", TUS),
        Request("PATCH", here, b"{}\n", TUS),
        Request("GET", f"{API}/uploads"),
        Request("POST", f"{API}/uploads/import", {"uploads": [row.pk]}),
        Request("GET", "/c/birds/import/"),
    ]
    gone = Request("DELETE", here, None, {"HTTP_TUS_RESUMABLE": "1.0.0"})
    return [gone, Request("POST", "/c/birds/import/uploads/delete/", {"number": row.pk})], uses


def file_import(world: World) -> Kind:
    row = FileImport.objects.create(collection=world.collection, owner=world.people["owner"], state="ready")
    here, page = f"{API}/imports/{row.number}", f"/c/birds/import/{row.number}/"
    uses = [Request("GET", path) for path in (here, page)]
    uses += [Request("POST", f"{here}/{act}") for act in ("check", "start", "cancel")]
    uses += [Request("POST", path, {}) for path in (f"{here}/options", page)]
    return [Request("POST", f"{here}/discard"), Request("POST", f"{page}discard/")], uses


def saved_view(world: World) -> Kind:
    number, about = next(numbers), {"collection": world.collection, "user": world.people["owner"]}
    row = SavedView.objects.create(name=f"view-{number}", query="order=-id", **about)
    page = f"/c/birds/pairs/views/{row.pk}/"
    return [Request("POST", page, {"delete": "1"})], [Request("POST", page, {"name": f"renamed-{number}"})]


def token(world: World) -> Kind:
    row, secret = make_token(world.people["owner"], None, name="n", scopes=["read"], days=1)
    mine = {"HTTP_AUTHORIZATION": f"Bearer {secret}"}
    return [Request("POST", f"/accounts/tokens/{row.pk}/revoke/")], [Request("GET", API, None, mine)]


def passage(world: World) -> Kind:
    asked_by = Membership.objects.get(user=world.people["adjudicator"])
    row = PassageDraft.objects.create(query=world.pair.query, asked_by=asked_by, url="http://ice.example/")
    page = f"/c/birds/aspects/{world.pair.query_id}/passages/{row.pk}/"
    return [Request("POST", f"{page}dismiss/")], [Request("GET", page), Request("POST", f"{page}again/")]


def member(world: World) -> Kind:
    user = User.objects.create(username=f"m-{next(numbers)}")
    row = members.add_member(user=user, collection=world.collection, role=Role.ANNOTATOR)
    here = f"{API}/members/{row.pk}"
    uses = [Request("GET", path) for path in (here, f"/c/birds/people/{row.pk}/")]
    uses += [Request("PATCH", here, body) for body in ({"role": "adjudicator"}, {"active": True}, {"paused": True})]
    return [Request("DELETE", here)], uses


KINDS: tuple[Callable[[World], Kind], ...] = (
    webhook, suite, query_list, run, invitation, upload, file_import, saved_view, token, passage, member,
)  # fmt: skip


def test_what_is_deleted_while_it_is_used_is_never_an_error_of_ours(world: World, crowd: Crowd) -> None:
    for kind in KINDS:
        for _ in range(ROUNDS):
            deletions, _uses = kind(world)
            for gone in deletions:
                crowd.at_once([gone] * AT_ONCE)
            deletions, _uses = kind(world)
            crowd.at_once((deletions * AT_ONCE)[:AT_ONCE])
        for place in range(len(kind(world)[1])):
            for _ in range(ROUNDS):
                deletions, uses = kind(world)
                half = (deletions * AT_ONCE)[: AT_ONCE // 2]
                # Some before the deletion, some after it.
                crowd.at_once([uses[place], *half, *[uses[place]] * (AT_ONCE - len(half) - 1)])
    print(sum(crowd.answers.values()), sorted(crowd.answers.items()))
    assert crowd.faults == []
    assert sum(crowd.answers.values()) >= 2_000


# The world's jobs have no more options than its doors need.
@pytest.mark.ignore_template_errors
def test_a_collection_that_is_deleted_is_not_found_by_whoever_works_in_it(world: World, crowd: Crowd) -> None:
    """Every operation and every page, while the collection goes away."""
    every = [Request(one.method, one.path) for one in doors(world) if one.method != "HEAD"]
    paths = [route.path for route in routes(world) if "/c/birds/" in route.path]
    every += [Request(method, path) for path in paths for method in ("GET", "POST")]
    assert len(every) > 400

    def remove() -> None:
        delete_collection(world.collection)
        connection.close()

    with ThreadPoolExecutor(1) as remover:
        for start in range(0, len(every), AT_ONCE):
            if start == 200:
                removed = remover.submit(remove)
            crowd.at_once(every[start : start + AT_ONCE])
        removed.result()
    print(sum(crowd.answers.values()), sorted(crowd.answers.items()))
    assert crowd.faults == []
