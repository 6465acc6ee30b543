"""Events: each is written by the act itself, in its transaction, by whatever code it happens."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Membership
from annotation.work.quality_control.exclusion import exclude_judgments, reinstate_judgments
from api.models import Webhook, WebhookDelivery
from api.webhooks import services
from api.webhooks.alarms import write_alarms
from config import env
from corpus.collections.removal import delete_collection
from corpus.models import Collection, Item
from jobs import leases
from judges.campaigns import lifecycle
from judges.costs import counters
from judges.engine import budget, route_breakers
from judges.engine.leases import FINISH, PAUSE
from judges.models import Campaign
from tests.admin_site import ROUTE, audited
from tests.api.conftest import Call
from tests.api.webhooks.conftest import Hooked
from tests.evidence import make_campaign, make_judge, make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.site.test_numbers import make_gate
from training.models import Job

pytestmark = pytest.mark.django_db


def told() -> list[tuple[str, str, dict[str, Any]]]:
    """What was written: event, subject, data."""
    return list(WebhookDelivery.objects.order_by("pk").values_list("event", "subject", "data"))


def names() -> list[str]:
    return [event for event, _subject, _data in told()]


def judge_of(call: Call, member: Membership, grade: int) -> dict[str, Any]:
    task = call(member.user, "POST", "collections/birds/task/claim").json()["task"]
    body = {"item": task["item"], "token": task["token"], "grade": grade}
    assert call(member.user, "POST", "collections/birds/task/judge", body).status_code == 200
    return task


def test_a_task_is_told_once_enough_people_judged_and_again_after_an_undo(call: Call, hooked: Hooked) -> None:
    bob, carol = (make_member(hooked.row.collection, name) for name in ("bob", "carol"))
    pair = make_pair(hooked.row.collection)
    item = make_item(pair, overlap=2)
    judge_of(call, carol, 1)
    assert told() == []
    judge_of(call, bob, 1)
    data = {
        "task": item.pk, "pair": pair.pk, "query": pair.query.external_id, "document": pair.document.external_id,
        "reason": "disagreement", "campaign": None,
    }  # fmt: skip
    assert told() == [("task.resolved", f"task:{item.pk}", data)]
    call(bob.user, "POST", "collections/birds/task/undo", {"item": item.pk})
    judge_of(call, bob, 1)
    assert names() == ["task.resolved"] * 2


def test_many_tasks_that_one_statement_resolves_are_one_insert(call: Call, hooked: Hooked) -> None:
    bob = make_member(hooked.row.collection, "bob")
    made = {make_item(make_pair(hooked.row.collection)).pk for _ in range(20)}
    for _ in made:
        judge_of(call, bob, 1)
    WebhookDelivery.objects.all().delete()
    act = exclude_judgments(membership=bob, by=None)
    assert told() == [], "they are open again"
    reinstate_judgments(act=act, by=None)
    assert {data["task"] for _event, _subject, data in told()} == made
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT cmin::text) FROM api_webhookdelivery")
        assert cursor.fetchone() == (1,), "one statement wrote them"


def test_nothing_is_written_for_other_collections_other_events_and_disabled_webhooks(call, hooked, admin):
    bob = make_member(hooked.row.collection, "bob")
    for _ in range(2):
        make_item(make_pair(hooked.row.collection))
    services.change_webhook(hooked.row, admin.user, events=["export.ready"])
    judge_of(call, bob, 1)
    services.change_webhook(hooked.row, admin.user, events=["task.resolved"], active=False)
    judge_of(call, bob, 1)
    stones = make_member(make_collection("stones"), "dave")
    item = make_item(make_pair(stones.collection))
    Item.objects.filter(pk=item.pk).update(state="settled")
    assert told() == []


def test_an_act_that_is_rolled_back_tells_nothing(hooked: Hooked) -> None:
    item = make_item(make_pair(hooked.row.collection))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Item.objects.filter(pk=item.pk).update(state="settled")
        assert names() == ["task.resolved"]
        1 / 0  # noqa: B018
    assert told() == []


def test_the_statements_of_a_judgment_are_as_many_with_a_webhook_as_without(call: Call, hooked: Hooked) -> None:
    bob = make_member(hooked.row.collection, "bob")
    for _ in range(3):
        make_item(make_pair(hooked.row.collection))
    judge_of(call, bob, 1)
    with CaptureQueriesContext(connection) as with_webhook:
        judge_of(call, bob, 1)
    hooked.row.delete()
    with CaptureQueriesContext(connection) as without:
        judge_of(call, bob, 1)
    assert len(with_webhook) == len(without)


@pytest.fixture
def campaign(hooked: Hooked) -> Campaign:
    found = make_campaign(hooked.row.collection, [make_judge("debater")], policy="debate")
    Campaign.objects.filter(pk=found.pk).update(state="running")
    WebhookDelivery.objects.all().delete()
    found.refresh_from_db()
    return found


def test_a_campaign_is_told_whoever_stops_or_ends_it_and_a_cost_centre_is_none(campaign: Campaign) -> None:
    lifecycle.pause(campaign=campaign)
    lifecycle.resume(campaign=campaign)
    lifecycle.cancel(campaign=campaign)
    assert {subject for _event, subject, _data in told()} == {f"campaign:{campaign.pk}"}
    Campaign.objects.update(state="running")
    campaign.refresh_from_db()
    with connection.cursor() as cursor:
        cursor.execute(PAUSE, {"campaign": campaign.pk, "starts": campaign.starts, "why": "401 from the provider"})
        Campaign.objects.update(state="running", paused_because="")
        cursor.execute(budget.STOP, {"campaign": campaign.pk, "starts": campaign.starts, "cap": "budget"})
        Campaign.objects.update(state="running")
        cursor.execute(FINISH, {"campaign": campaign.pk})
    centre = Campaign.objects.create(collection=campaign.collection, policy="retrieval", panel="p")
    Campaign.objects.filter(pk=centre.pk).update(state="finished")
    keys = ("state", "paused_because", "stopped_by")
    assert [(event, *(data[key] for key in keys)) for event, _subject, data in told()] == [
        ("campaign.stopped", "paused", "", ""),
        ("campaign.ended", "cancelled", "", ""),
        ("campaign.stopped", "paused", "401 from the provider", ""),
        ("campaign.stopped", "budget", "", "budget"),
        ("campaign.ended", "finished", "", ""),
    ]


def test_an_export_is_told_when_its_files_are_there(hooked: Hooked) -> None:
    make_pair(hooked.row.collection)
    snapshot = create_snapshot(hooked.row.collection, ExportOptions(format="csv"))
    assert told() == []
    write_snapshot(snapshot)
    ((event, subject, data),) = told()
    assert (event, subject, data["format"]) == ("export.ready", f"export:{snapshot.pk}", "csv")
    assert data["export"] == snapshot.number == 1
    assert data["files"] == [one["name"] for one in snapshot.manifest["files"]] != []


def test_a_training_is_told_when_it_ends_each_time_and_other_jobs_are_not(hooked: Hooked) -> None:
    values = {"collection": hooked.row.collection, "folder": "/nowhere", "options": {"recipe": "prism"}}
    Job.objects.create(kind="rerank", **values)
    job = leases.claim(Job, kind="rerank")
    assert job is not None and leases.finish(job, job.READY)
    Job.objects.create(kind="train", **values)
    job = leases.claim(Job, kind="train")
    assert job is not None and leases.finish(job, job.FAILED, error="out of memory")
    assert leases.resume(job)
    job = leases.claim(Job, kind="train")
    assert job is not None and leases.finish(job, job.READY)
    keys = ("training", "state", "recipe", "error")  # "training": its number in the collection
    assert [(event, subject, *(data[key] for key in keys)) for event, subject, data in told()] == [
        ("training.ended", f"training:{job.pk}", 2, "failed", "prism", "out of memory"),
        ("training.ended", f"training:{job.pk}", 2, "finished", "prism", ""),
    ]


def test_a_gate_is_told_with_its_verdict(hooked: Hooked) -> None:
    gate = make_gate(make_member(hooked.row.collection, "dana"))
    data = {
        "gate": 1, "verdict": "cannot_tell", "run": "bm25", "against": "bm25", "deciding_pairs": 1, "reason": "Judge.",
    }  # fmt: skip
    assert told() == [("gate.decided", f"gate:{gate.pk}", data)]


def test_a_route_that_a_worker_stops_is_told_once_whatever_follows(campaign: Campaign) -> None:
    audited(campaign.collection, right=2, wrong=8)
    WebhookDelivery.objects.all().delete()
    for _ in range(2):
        route_breakers.trip_routes(campaign.pk, campaign.collection.relevant_from, counters.read(campaign.pk))
        counters.add(campaign.pk, f"stopped:{ROUTE}", 1)
    write_alarms()
    assert told() == [("audit.alarm", f"campaign:{campaign.pk}", {"campaign": campaign.number, "route": ROUTE})]


def test_a_route_whose_audit_people_answer_after_the_end_is_told_by_the_next_look(campaign: Campaign) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    audited(campaign.collection, right=2, wrong=8)
    audited(campaign.collection, right=9, wrong=1, route="r2.m5.y")
    WebhookDelivery.objects.all().delete()
    write_alarms()
    assert told() == [], "no answer has come since the webhook was made"
    Item.objects.filter(reason="audit").update(settled_at=Webhook.objects.get().created_at)
    write_alarms()
    write_alarms()
    assert [(event, data["campaign"], data["route"]) for event, _subject, data in told()] == [("audit.alarm", 1, ROUTE)]


def test_the_documented_events_are_those_that_there_are() -> None:
    page = (env.ROOT / "docs" / "developers.md").read_text()
    assert [one for one in (*Webhook.Event.values, WebhookDelivery.TEST) if f"`{one}`" not in page] == []


def test_a_collection_is_deleted_with_its_webhooks(hooked: Hooked, admin: Membership) -> None:
    services.send_test(hooked.row, admin.user)
    make_judgment(make_pair(hooked.row.collection), admin.assessor, 1)
    counts = delete_collection(Collection.objects.get(name="birds"))
    assert counts["webhook deliveries"] == 1 and not Webhook.objects.exists()
