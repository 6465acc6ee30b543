"""The client against the site in this process: parts of a collection answer as records say; signatures of webhooks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from annotation.models import Role
from api.models import WebhookDelivery
from api.tokens import make_token
from api.webhooks import services, signing
from corpus.models import Label
from quorum_client import Quorum, QuorumError
from quorum_client.parts import Jobs
from quorum_client.webhooks import VerificationError, verify
from tests.factories import make_collection, make_member, make_pair, make_user
from tests.imported_files import work_off
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """Keep the test's transaction over requests, as Django's own client does."""
    signals = request_started, request_finished
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


def client_of(user: Any) -> Quorum:
    token = make_token(user, None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
    return Quorum("http://testserver", token, transport=httpx2.WSGITransport(app=get_wsgi_application()))


def test_every_list_and_object_is_read(settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world = World()
    birds = client_of(world.people["admin"]).collection("birds")
    lists = [birds.queries, birds.documents, birds.pairs, birds.judgments, birds.models.list]
    lists += [part.list for part in vars(birds).values() if isinstance(part, Jobs)]
    rows = {read: list(read()) for read in lists}
    assert len(rows) == 11 and sum(map(bool, rows.values())) >= 8
    assert birds.read().name == "birds" and birds.pair(world.pair.pk).number == world.pair.pk
    assert birds.campaigns.read(world.campaign.number).status["campaign"] == world.campaign.number
    assert birds.imports.read(world.file_import.number).number == world.file_import.number
    assert birds.runs.read(world.run.pk).name == "bm25"
    assert birds.reports.read(world.report.number).number == world.report.number
    assert birds.trainings.read(world.job.number).model == world.model.pk
    assert birds.models.read(world.model.pk).name == "m"
    assert birds.leaderboard.read().systems == []
    assert birds.agreement.read(judges=True)["items"] == 0 and birds.agreement.read_table().startswith("a,b,n")
    assert birds.quality().can_go_out in (True, False)
    assert birds.settings.read().overlap == world.collection.overlap
    # What the client has no method for.
    assert birds.request("GET", f"members/{world.bystander.pk}")["username"] == "bystander"
    assert [row["number"] for row in birds.rows("webhooks")] == [world.webhook.number]


def test_settings_change_only_where_nobody_changed_them_meanwhile() -> None:
    settings = client_of(make_member(make_collection("c"), "alice", Role.ADMIN).user).collection("c").settings
    seen = settings.read()
    changed = settings.change(overlap=3, if_match=seen)
    with pytest.raises(QuorumError) as refused:
        settings.change(overlap=5, if_match=seen)
    assert refused.value.status == 412 and settings.read().overlap == 3
    assert settings.change(title="Books", if_match=changed).title == "Books"


def test_labels_come_with_texts_and_what_was_not_labelled_is_left_out() -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    pair, _unlabelled = make_pair(collection), make_pair(collection)
    Label.objects.create(pair=pair, grade=1, origin="people")
    c = client_of(alice.user).collection("c")
    assert [(row.number, row.grade) for row in c.labels()] == [(pair.pk, 1)]
    (label,) = c.labelled_texts()
    assert (label.query_id, label.query) == (pair.query.external_id, pair.query.text)
    assert label.document.endswith(pair.document.text) and (label.grade, label.origin) == (1, "people")


def test_files_are_imported_in_steps(tmp_path: Path) -> None:
    owner = make_user("olivia", is_owner=True)
    quorum = client_of(owner)
    books = quorum.create_collection(name="books", grades=1)
    assert [row.name for row in quorum.collections()] == ["books"]
    for name, text in (("documents.jsonl", '{"_id": "d", "text": ""}'), ("queries.jsonl", '{"_id": "q", "text": "q"}')):
        (tmp_path / name).write_text(text + "\n")
    created = books.imports.create(sorted(tmp_path.iterdir()))
    work_off()
    with pytest.raises(QuorumError, match="documents without text"):
        books.imports.wait(created.number)
    books.imports.correct(created.number, empty="keep", bm25=1)
    work_off()
    assert books.imports.wait(created.number).checked
    books.imports.start(created.number)
    work_off()
    assert books.imports.wait(created.number).imported
    assert [row.id for row in books.documents()] == ["d"]


@pytest.fixture
def sent(settings: pytest.MonkeyPatch) -> tuple[str, WebhookDelivery, str]:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    row, secret = services.create_webhook(
        collection, alice.user, url="https://ice.example/hook", events=["export.ready"]
    )
    delivery = WebhookDelivery.objects.create(webhook=row, event="export.ready", subject="export:1", data={"export": 1})
    delivery.refresh_from_db()
    body = json.dumps({"type": "export.ready", "timestamp": "2026-11-26T09:30:00+00:00", "data": {"export": 1}})
    return secret, delivery, body


def test_what_the_site_signed_is_an_event_and_during_a_replacement_either_secret_verifies(sent) -> None:
    secret, delivery, body = sent
    headers = signing.sign_delivery(delivery, body)
    event = verify(body.encode(), {name.title(): value for name, value in headers.items()}, secret)
    assert (event.id, event.type, event.data) == (delivery.header_id, "export.ready", {"export": 1})
    assert verify(body, headers, secret) == event
    fresh = services.replace_secret(delivery.webhook, delivery.webhook.made_by)
    delivery = WebhookDelivery.objects.select_related("webhook").get(pk=delivery.pk)
    headers = signing.sign_delivery(delivery, body)
    assert verify(body, headers, secret) == verify(body, headers, fresh)


def test_other_bodies_secrets_times_and_headers_are_refused(sent: tuple[str, WebhookDelivery, str]) -> None:
    secret, delivery, body = sent
    headers = signing.sign_delivery(delivery, body)
    old = signing.sign_delivery(delivery, body, datetime.now(UTC) - timedelta(minutes=6))
    for wrong in (
        (body.replace("1}", "2}"), headers, secret),
        (body, headers, signing.make_secret()),
        (body, headers, ""),
        (body, headers, "whsec_"),
        (body, old, secret),
        (body, {**headers, "webhook-signature": "v1"}, secret),
        (body, {**headers, "webhook-timestamp": "now"}, secret),
        (body, {"webhook-id": headers["webhook-id"]}, secret),
        (b"\xff", headers, secret),
        ("[]", signing.sign_delivery(delivery, "[]"), secret),
    ):
        with pytest.raises(VerificationError):
            verify(*wrong)
