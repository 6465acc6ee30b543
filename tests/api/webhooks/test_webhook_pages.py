"""Webhooks on their pages and by the API: made, changed, tested, replayed, deleted."""

import re
from typing import Any

import pytest
from django.test import Client

from annotation.models import AuditEntry, Membership, Role
from api.models import Webhook, WebhookAttempt, WebhookDelivery
from api.webhooks import services
from api.webhooks.delivering import deliver_due
from tests.api.webhooks.conftest import Hooked, Receiver
from tests.factories import make_collection, make_member
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(admin: Membership) -> Client:
    return signed_in(admin)


def acts() -> list[str]:
    return list(AuditEntry.objects.filter(act__startswith="webhook.").order_by("pk").values_list("act", flat=True))


def test_an_admin_makes_a_webhook_on_the_page_and_sees_its_secret_once(browser: Client) -> None:
    given = {"url": "https://receiver.example/hook", "events": ["task.resolved", "export.ready"], "description": "CI"}
    made = browser.post("/c/birds/webhooks/", given)
    (secret,) = re.findall(r'value="(whsec_[^"]+)"', made.text)
    row = Webhook.objects.get()
    assert (row.url, row.events, row.description) == (given["url"], given["events"], "CI")
    assert secret not in row.secret
    for page in ("/c/birds/webhooks/", f"/c/birds/webhooks/{row.number}/"):
        shown = browser.get(page).text
        assert "receiver.example" in shown and "whsec_" not in shown
    assert AuditEntry.objects.get(act="webhook.made").details["host"] == "receiver.example"


def test_a_wrong_form_is_kept_with_its_reason_and_makes_nothing(browser, admin, monkeypatch):
    right = {"url": "https://receiver.example/", "events": ["export.ready"]}
    for wrong in ({"url": "https://10.0.0.1/"}, {"url": ""}, {"events": ["no.event"]}, {"events": []}):
        values = {**right, **wrong}
        answer = browser.post("/c/birds/webhooks/", values)
        assert answer.status_code == 422 and "errorlist" in answer.text and values["url"] in answer.text
    assert not Webhook.objects.exists() and acts() == []
    monkeypatch.setattr(services, "MOST", 1)
    services.create_webhook(admin.collection, admin.user, **right)
    answer = browser.post("/c/birds/webhooks/", right)
    assert answer.status_code == 422 and "delete one first" in answer.text


def test_a_webhook_is_changed_disabled_enabled_and_deleted_on_its_page(browser, hooked, settings):
    settings.WEBHOOK_NETWORKS = []
    here = f"/c/birds/webhooks/{hooked.row.number}/"
    refused = browser.post(here, {"url": "http://127.0.0.1/", "events": ["export.ready"]})
    assert refused.status_code == 422 and Webhook.objects.get().url == hooked.row.url
    browser.post(here, {"url": "https://other.example/", "events": ["audit.alarm"], "description": ""})
    row = Webhook.objects.get()
    assert (row.url, row.events) == ("https://other.example/", ["audit.alarm"])
    WebhookDelivery.objects.create(webhook=row, event="audit.alarm", subject="campaign:1")
    browser.post(f"{here}disable/")
    row.refresh_from_db()
    assert row.disabled == "person" and WebhookDelivery.objects.get().state == "failed"
    assert "Nothing is sent" in browser.get(here).text and "was disabled" not in browser.get("/c/birds/settings/").text
    browser.post(f"{here}replay-failed/")
    browser.post(f"{here}test/")
    assert WebhookDelivery.objects.get().state == "failed", "a disabled webhook sends nothing"
    browser.post(f"{here}enable/")
    browser.post(f"{here}replay-failed/")
    assert WebhookDelivery.objects.get().state == "pending"
    assert browser.post(f"{here}burn/").status_code == 404
    browser.post(f"{here}delete/")
    assert not Webhook.objects.exists() and not WebhookDelivery.objects.exists()
    assert acts() == ["webhook.made", *["webhook.changed"] * 3, "webhook.replayed", "webhook.deleted"]


def test_a_test_event_is_sent_and_shown_with_its_answer_and_replayed(browser, hooked, receiver):
    receiver.answers.append(500)
    receiver.body = b"<script>alert(1)</script>"
    led = browser.post(f"/c/birds/webhooks/{hooked.row.number}/test/")
    page = led["Location"]
    waiting = browser.get(page)
    assert "every 2s" in waiting.text and "webhook.test" in waiting.text
    assert browser.get(page, headers={"HX-Request": "true"}).status_code == 200
    deliver_due()
    part = browser.get(page, headers={"HX-Request": "true"})
    assert part.status_code == 286 and "500 in" in part.text and "200 in" in part.text
    assert "&lt;script&gt;" in part.text and "<script>" not in part.text
    browser.post(f"{page}replay/")
    deliver_due()
    assert len(receiver.got) == 3 and len(set(receiver.ids())) == 1
    log = browser.get(f"/c/birds/webhooks/{hooked.row.number}/").text
    assert "delivered" in log and "200 in" in log


def test_all_that_failed_is_replayed_and_nothing_else(browser: Client, hooked: Hooked, receiver: Receiver) -> None:
    for number, state in enumerate(["failed", "delivered", "failed"]):
        values = {"subject": f"task:{number}", "data": {}, "state": state, "attempts": 10}
        WebhookDelivery.objects.create(webhook=hooked.row, event="task.resolved", **values)
    here = f"/c/birds/webhooks/{hooked.row.number}/"
    page = browser.get(f"{here}?state=failed").text
    assert "Replay 2 failed deliveries" in page and page.count("task.resolved</code>") == 2
    browser.post(f"{here}replay-failed/")
    deliver_due()
    assert len(receiver.got) == 2
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_the_log_is_read_in_parts(browser: Client, hooked: Hooked) -> None:
    rows = [WebhookDelivery(webhook=hooked.row, event="task.resolved", subject=f"task:{n}") for n in range(60)]
    WebhookDelivery.objects.bulk_create(rows)
    here = f"/c/birds/webhooks/{hooked.row.number}/"
    first = browser.get(here)
    (before,) = re.findall(r"before=(\d+)", first.text)
    second = browser.get(f"{here}?before={before}")
    seen = [[row.subject for row in page.context["page"]["deliveries"]] for page in (first, second)]
    assert [len(part) for part in seen] == [50, 10] and len({*seen[0], *seen[1]}) == 60
    for odd in ("x", "-1", "9" * 30, "²"):
        assert browser.get(f"{here}?before={odd}&state=odd").status_code == 200


def test_an_admin_of_another_collection_reaches_nothing_of_it(hooked: Hooked) -> None:
    other = make_member(make_collection("stones"), "dave", Role.ADMIN)
    made = WebhookDelivery.objects.create(webhook=hooked.row, event="task.resolved", subject="task:1")
    url = "https://other.example/"
    second, _ = services.create_webhook(other.collection, other.user, url=url, events=["export.ready"])
    WebhookDelivery.objects.filter(pk=made.pk).update(state="failed")
    here = f"/c/stones/webhooks/{second.number}/deliveries/{made.pk}/"
    assert signed_in(other).get(here).status_code == signed_in(other).post(f"{here}replay/").status_code == 404


def test_by_the_api_a_webhook_is_made_read_changed_tested_and_deleted(call, admin, receiver):
    def ask(method: str, path: str = "", body: object = None) -> Any:
        return call(admin.user, method, f"collections/birds/webhooks{path}", body)

    made = ask("POST", "", {"url": receiver.url, "events": ["export.ready", "export.ready"]})
    assert made.status_code == 201, made.content
    number, secret = made.json()["webhook"]["number"], made.json()["secret"]
    assert ask("GET").json()["items"] == [made.json()["webhook"]] == [ask("GET", f"/{number}").json()]
    assert "secret" not in ask("GET", f"/{number}").json()
    changed = ask("PATCH", f"/{number}", {"events": ["task.resolved"], "description": " queue "}).json()
    assert (changed["events"], changed["description"], changed["url"]) == (["task.resolved"], "queue", receiver.url)
    tested = ask("POST", f"/{number}/test")
    assert tested.status_code == 201 and tested.json()["state"] == "pending"
    receiver.answers.append(500)
    deliver_due()
    receiver.got[0].verify(secret)
    (delivery,) = ask("GET", f"/{number}/deliveries").json()["items"]
    assert delivery["id"] == receiver.got[0].id and delivery["state"] == "delivered"
    assert [(one["status"], one["problem"]) for one in delivery["attempts"]] == [(500, "status"), (200, "")]
    assert ask("GET", f"/{number}/deliveries?state=failed").json()["items"] == []
    assert ask("POST", f"/{number}/replay", {"delivery": delivery["number"]}).json() == {"replayed": 1}
    deliver_due()
    assert len(receiver.got) == 3
    assert ask("POST", f"/{number}/replay", {}).json() == {"replayed": 0}
    assert ask("POST", f"/{number}/replay", {"delivery": 1 << 40}).status_code == 404
    new = ask("POST", f"/{number}/secret").json()["secret"]
    assert new != secret and new.startswith("whsec_")
    assert ask("PATCH", f"/{number}", {"active": False}).json()["disabled"] == "person"
    assert ask("POST", f"/{number}/test").status_code == 422
    assert ask("PATCH", f"/{number}", {"active": True}).json()["active"] is True
    assert ask("DELETE", f"/{number}").status_code == 204
    assert ask("GET", f"/{number}").status_code == 404 and not WebhookAttempt.objects.exists()
