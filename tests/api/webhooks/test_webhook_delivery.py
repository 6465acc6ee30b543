"""Deliveries: signed, again after a failure, in order of each object, never lost with a worker (issue 17, check 10)."""

import os
import re
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone
from standardwebhooks import WebhookVerificationError

from annotation.models import AuditEntry, Membership
from api import tasks
from api.models import Webhook, WebhookAttempt, WebhookDelivery
from api.webhooks import delivering, sending, services
from api.webhooks.delivering import claim_due, deliver_due, is_any_due, pause_after, record_answer
from api.webhooks.sending import ReceiverAnswer
from jobs import notifications
from jobs.processes import spawn_child, stop_children
from judges.workers.worker_pool import worker_command
from tests.api.webhooks.conftest import Hooked, Receiver
from tests.instances import PATIENCE, ROOT, until
from tests.plugin_browser import free_port

pytestmark = pytest.mark.django_db


def write(hooked: Hooked, subject: str, step: int) -> WebhookDelivery:
    made = WebhookDelivery.objects.create(
        webhook=hooked.row, event="campaign.stopped", subject=subject, data={"step": step}
    )
    made.refresh_from_db()
    return made


def states(hooked: Hooked) -> list[str]:
    return list(WebhookDelivery.objects.filter(webhook=hooked.row).order_by("pk").values_list("state", flat=True))


def steps(receiver: Receiver) -> list[int]:
    return [one.event["data"]["step"] for one in receiver.got]


def test_a_receiver_that_answers_500_twice_gets_each_event_signed_once_more_and_in_order(receiver, hooked):
    first, second, third = (write(hooked, "campaign:1", step) for step in (1, 2, 3))
    receiver.answers.extend([500, 500])
    assert deliver_due() == 5
    assert steps(receiver) == [1, 1, 1, 2, 3], "the second waits until the first has arrived"
    assert receiver.ids() == [first.header_id] * 3 + [second.header_id, third.header_id]
    for got in receiver.got:
        message = got.verify(hooked.secret)
        assert message["type"] == "campaign.stopped" and message["data"]["collection"] == "birds"
    assert len({one.body for one in receiver.got[:3]}) == 1, "an attempt says what the one before said"
    assert states(hooked) == ["delivered"] * 3
    log = list(WebhookAttempt.objects.order_by("pk").values_list("status", "problem", "answer"))
    assert log[:3] == [(500, "status", "thank you")] * 2 + [(200, "", "thank you")]
    hooked.row.refresh_from_db()
    assert hooked.row.failing_since is None


def test_objects_do_not_wait_for_each_other_and_what_failed_for_good_lets_the_later_ones_go(receiver, hooked, settings):
    receiver.answers.extend([503] * delivering.MOST_ATTEMPTS)
    for step in (1, 2):
        write(hooked, "campaign:1", step)
    deliver_due()
    assert steps(receiver) == [1] * delivering.MOST_ATTEMPTS + [2] and states(hooked) == ["failed", "delivered"]
    settings.WEBHOOK_RETRY_SECONDS = 3600
    receiver.got.clear()
    receiver.answers.append(500)
    write(hooked, "campaign:1", 3)
    deliver_due()
    for step, subject in enumerate(("campaign:1", "export:1", "task:1"), 4):
        write(hooked, subject, step)
    deliver_due()
    assert steps(receiver)[0] == 3 and sorted(steps(receiver)[1:]) == [5, 6]
    assert states(hooked)[2:] == ["pending", "pending", "delivered", "delivered"]


def test_both_secrets_sign_for_a_day_after_the_secret_was_replaced(receiver, hooked, admin):
    new = services.replace_secret(hooked.row, admin.user)
    write(hooked, "task:1", 1)
    deliver_due()
    for secret in (hooked.secret, new):
        receiver.got[0].verify(secret)
    Webhook.objects.update(former_secret_until=timezone.now() - timedelta(seconds=1))
    write(hooked, "task:1", 2)
    deliver_due()
    receiver.got[1].verify(new)
    with pytest.raises(WebhookVerificationError):
        receiver.got[1].verify(hooked.secret)


def test_the_secret_stands_nowhere_and_where_its_key_changed_nothing_is_sent(receiver, hooked, settings):
    with connection.cursor() as cursor:
        cursor.execute("SELECT w::text FROM api_webhook w UNION ALL SELECT a::text FROM annotation_auditentry a")
        assert not [row for row in cursor.fetchall() if hooked.secret[6:] in str(row)]
    settings.SECRET_KEY, settings.WEBHOOK_RETRY_SECONDS = "another one", 3600
    write(hooked, "task:1", 1)
    deliver_due()
    assert receiver.got == [] and WebhookAttempt.objects.get().problem == "secret"


def test_what_receivers_do_wrong_is_in_the_log(receiver, hooked, settings, monkeypatch):
    """A redirect is not followed; of a long answer the first bytes are kept; one is late, and one is not there."""
    settings.WEBHOOK_RETRY_SECONDS = 3600
    receiver.answers.append(302)
    receiver.headers["Location"] = receiver.url
    write(hooked, "task:1", 1)
    deliver_due()
    assert len(receiver.got) == 1
    receiver.body = b"\x00\xff" + b"x" * 5_000_000
    write(hooked, "task:2", 2)
    deliver_due()
    answer = WebhookAttempt.objects.latest("pk").answer
    assert 990 < len(answer) <= 1000 and "\x00" not in answer and states(hooked) == ["pending", "delivered"]
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3)
    receiver.hold.clear()
    write(hooked, "task:3", 3)
    deliver_due()
    receiver.hold.set()
    Webhook.objects.update(url="http://127.0.0.1:1/")
    write(hooked, "task:4", 4)
    deliver_due()
    log = list(WebhookAttempt.objects.order_by("pk").values_list("status", "problem"))
    assert log == [(302, "redirect"), (200, ""), (None, "timeout"), (None, "connection")]


def test_a_slow_receiver_holds_up_no_other(receiver: Receiver, hooked: Hooked, admin: Membership) -> None:
    other, _ = services.create_webhook(admin.collection, admin.user, url=receiver.url + "2", events=["export.ready"])
    for number in range(40):
        write(hooked, f"task:{number}", number)
    WebhookDelivery.objects.create(webhook=other, event="export.ready", subject="export:1", data={"step": 99})
    claimed = claim_due()
    assert len([one for one in claimed if one.webhook_id == hooked.row.pk]) == delivering.OF_ONE_WEBHOOK
    assert len([one for one in claimed if one.webhook_id == other.pk]) == 1
    assert claim_due(claimed) == [], "as many are out as may be"


def test_pauses_grow_to_six_hours(settings: Any) -> None:
    settings.WEBHOOK_RETRY_SECONDS = 5
    for failures, usual in ((1, 5), (2, 20), (3, 80), (9, 21_600), (10, 21_600)):
        assert 0.89 * usual <= pause_after(failures) <= 1.11 * usual


def test_whoever_lost_the_claim_adds_to_the_log_alone_and_to_none_once_the_webhook_is_gone(hooked, admin):
    write(hooked, "task:1", 1)
    (late,) = claim_due()
    assert claim_due() == [] and not is_any_due()
    WebhookDelivery.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    assert is_any_due()
    (now,) = claim_due()
    record_answer(late, ReceiverAnswer(500, 10, "status"))
    row = WebhookDelivery.objects.get()
    assert (row.state, row.attempts) == ("pending", 0)
    record_answer(now, ReceiverAnswer(200, 10, ""))
    record_answer(late, ReceiverAnswer(500, 10, "status"))
    assert states(hooked) == ["delivered"] and WebhookAttempt.objects.count() == 3
    services.delete_webhook(hooked.row, admin.user)
    record_answer(now, ReceiverAnswer(200, 10, ""))
    assert not WebhookAttempt.objects.exists()


def fail(hooked: Hooked, times: int, status: int = 500) -> None:
    for number in range(times):
        write(hooked, f"task:{WebhookDelivery.objects.count()}", number)
        (claimed,) = claim_due()
        record_answer(claimed, ReceiverAnswer(status, 10, "status"))


def test_a_webhook_that_fails_for_days_is_disabled_and_admins_are_told(
    hooked: Hooked, admin: Membership, settings: Any, client: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.WEBHOOK_RETRY_SECONDS, settings.EMAIL_HOST = 3600, "mail.example"
    admin.user.email = "alice@example.org"
    admin.user.save()
    fail(hooked, delivering.MOST_ATTEMPTS - 1)
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=6))
    WebhookAttempt.objects.update(at=timezone.now() - timedelta(days=5, hours=20))
    hooked.row.refresh_from_db()
    assert hooked.row.disabled == ""
    with django_capture_on_commit_callbacks(execute=True):
        fail(hooked, 1)
    hooked.row.refresh_from_db()
    assert hooked.row.disabled == "failing" and set(states(hooked)) == {"failed"}
    entry = AuditEntry.objects.get(act="webhook.disabled")
    assert entry.details == {"webhook": hooked.row.number, "because": "failing"}
    (sent,) = mail.outbox
    assert sent.to == ["alice@example.org"] and "birds" in sent.subject and hooked.row.url in sent.body
    client.force_login(admin.user)
    assert "1 webhook was disabled" in client.get("/c/birds/settings/").text


def test_one_failure_in_a_while_disables_no_webhook_and_gone_does_at_once(hooked: Hooked, settings: Any) -> None:
    settings.WEBHOOK_RETRY_SECONDS = 3600
    fail(hooked, 1)
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=60))
    fail(hooked, 1)
    hooked.row.refresh_from_db()
    assert hooked.row.disabled == ""
    fail(hooked, 1, status=410)
    hooked.row.refresh_from_db()
    assert hooked.row.disabled == "gone" and set(states(hooked)) == {"failed"} and claim_due() == []


def test_what_ended_a_month_ago_is_deleted_and_what_is_told_once_stays(hooked: Hooked) -> None:
    old = timezone.now() - timedelta(days=31)
    kept, ended, alarm = (write(hooked, f"task:{n}", n) for n in range(3))
    WebhookDelivery.objects.filter(pk=ended.pk).update(state="delivered", ended_at=old)
    WebhookAttempt.objects.create(delivery=ended, milliseconds=1)
    WebhookDelivery.objects.filter(pk=alarm.pk).update(state="failed", ended_at=old, once="audit.alarm:1:r1.m0.y")
    orphan = write(hooked, "task:9", 9)
    WebhookDelivery.objects.filter(pk=orphan.pk).update(webhook=0)
    assert services.delete_old_deliveries() == 2
    assert set(WebhookDelivery.objects.values_list("pk", flat=True)) == {kept.pk, alarm.pk}


def test_the_watcher_sends_one_message_for_what_is_due(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks, "notify", sent.append)
    key = notifications.redis_key("told", services.TASK)
    notifications.redis_client().delete(key)
    tasks.wake_deliverer()
    assert sent == []
    write(hooked, "task:1", 1)
    tasks.wake_deliverer()
    tasks.wake_deliverer()
    assert sent == [services.TASK]
    notifications.redis_client().delete(key)


def test_the_receiver_of_the_documentation_verifies(receiver: Receiver, hooked: Hooked, tmp_path: Any) -> None:
    """The example of docs/developers.md is run as it stands, told of an event, and of a forged one."""
    text = (ROOT / "docs" / "developers.md").read_text().partition("## Webhooks")[2]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    port = free_port()
    (tmp_path / "receiver.py").write_text(code.replace("8000", str(port)))
    environment = {**os.environ, "QUORUM_WEBHOOK_SECRET": hooked.secret, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(
        [sys.executable, tmp_path / "receiver.py"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        until(lambda: _is_open(port), "the example's server")
        Webhook.objects.update(url=f"http://127.0.0.1:{port}/")
        write(hooked, "task:1", 1)
        deliver_due()
        assert states(hooked) == ["delivered"]
        assert child.stdout is not None and "campaign.stopped" in child.stdout.readline()
        now = str(int(datetime.now(UTC).timestamp()))
        headers = {"webhook-id": "msg_1", "webhook-timestamp": now, "webhook-signature": "v1,AAAA"}
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(f"http://127.0.0.1:{port}/", data=b"{}", headers=headers))
        assert refused.value.code == 400
        refused.value.close()
    finally:
        child.kill()
        child.communicate()


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_loses_nothing_and_the_watcher_resumes(receiver, hooked, admin, instance):
    options = {"QUORUM_WEBHOOK_NETWORKS": "127.0.0.0/8", "QUORUM_LEASE_S": "2", "QUORUM_WEBHOOK_RETRY_S": "0.1"}
    environment = {**instance, **options}

    def start(name: str) -> subprocess.Popen[str]:
        return spawn_child(worker_command(1, name), environment, cwd=ROOT, stderr=subprocess.DEVNULL)

    receiver.hold.clear()
    first = start("killed")
    workers = [first]
    try:
        services.send_test(hooked.row, admin.user)
        until(lambda: len(receiver.got) == 1, "the first request", seconds=PATIENCE)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        receiver.answers.extend([500, 500])
        receiver.hold.set()
        write(hooked, f"webhook:{hooked.row.pk}", 2)
        workers.append(start("resuming"))
        until(lambda: states(hooked) == ["delivered"] * 2, "both deliveries", seconds=PATIENCE)
    finally:
        stop_children(workers)
    test, later = WebhookDelivery.objects.order_by("pk")
    assert receiver.ids() == [test.header_id] * 4 + [later.header_id]
    for got in receiver.got:
        got.verify(hooked.secret)
    assert list(test.log.order_by("pk").values_list("status", flat=True)) == [500, 500, 200]
