"""What waits keeps no worker from what does not, and says for what and until when it waits."""

import json
import multiprocessing
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from config.doctor.work import check_leases
from corpus.models import Collection
from jobs import workers
from jobs.notifications import redis_client
from judges import tasks
from judges.campaigns import lifecycle
from judges.campaigns.selectors import campaign_status
from judges.engine import notifications
from judges.models import Campaign, JudgeVersion, Panel, Work
from judges.workers import worker_pool
from tests import engine_parts as parts
from tests.engine_parts import FAST, collection_of, make_judge
from tests.evidence import make_campaign
from tests.factories import make_collection
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow


def begin(models: LocalModels, name: str, pairs: int, model: str, host: str) -> tuple[Collection, Campaign]:
    """A campaign of one judge at an account of its own."""
    collection = collection_of(pairs, name)
    make_judge(models, f"judge-{name}", model)
    JudgeVersion.objects.filter(name=f"judge-{name}").update(base_url=models.openai.replace("127.0.0.1", host))
    Panel.objects.create(name=name, ensemble=[f"judge-{name}"])
    return collection, parts.begin(collection, panel=name, policy="single")


@pytest.mark.parametrize(
    "stuck",
    first_slow([{"fault": "429", "retry_after": "861"}, {"fault": "503"}]),
    ids=["asks to wait", "answers with errors"],
)
def test_two_stuck_campaigns_hold_up_no_other(models: LocalModels, stuck: dict[str, str]) -> None:
    """There are two processes, and both of the stuck ones have had a turn."""
    models.script({"stuck": stuck, "well": {"verdict": "yes"}})
    first, _ = begin(models, "first", 30, "stuck", "localhost")
    second, _ = begin(models, "second", 30, "stuck", "127.0.0.2")
    until(lambda: all(campaign_status(one)["paused_because"] for one in (first, second)))
    until(lambda: not workers.work_in_progress())
    began = time.monotonic()
    small, _ = begin(models, "small", 2, "well", "127.0.0.1")
    until(lambda: campaign_status(small)["state"] == "finished")
    seconds = time.monotonic() - began
    print(f"two pairs beside two stuck campaigns: {seconds:.1f} s")
    assert seconds < 15
    assert campaign_status(first)["failed"] == 0
    if "retry_after" in stuck:
        said = campaign_status(first)["paused_because"]
        assert "until 20" in said and "UTC" in said and "429" in said
        assert sum(request["model"] == "stuck" for request in models.requests()) <= 8


def test_a_wait_ends_when_somebody_resumes_or_it_is_over(instance: object) -> None:
    notifications.wake_later(7, 60)
    assert notifications.is_drained(7) and not notifications.pop_due()
    notifications.wake_later(7, -1)
    assert notifications.pop_due() == [7] and not notifications.pop_due()
    notifications.wake_later(7, 60)
    notifications.notify_workers(7)
    assert not notifications.rests(7)


def test_a_cancelled_campaign_leaves_no_lease_and_no_alarm(model_server: LocalModels, unattended: None) -> None:
    """Its worker was killed before the cancel, or dies after it."""
    _, campaign = begin(model_server, "first", 3, "well", "127.0.0.1")
    gone, later = timezone.now() - timedelta(hours=1), timezone.now() + timedelta(hours=1)
    works = list(Work.objects.order_by("pk"))
    Work.objects.filter(pk=works[0].pk).update(state="running", lease_until=gone)
    Work.objects.filter(pk=works[1].pk).update(state="running", lease_until=later)
    lifecycle.cancel(campaign=campaign)
    assert Work.objects.filter(state="running").count() == 1, "a worker that lives has its pair still"
    Work.objects.filter(state="running").update(lease_until=gone)
    assert [str(finding.health) for finding in check_leases()] == ["ok"]
    tasks.release_abandoned()
    assert not Work.objects.filter(state="running").exists()


def _work(started: Any, end: Any) -> None:
    with workers.at_work("run dense"):
        started.set()
        end.wait()


def test_who_waits_is_told_for_what(instance: object) -> None:
    """This process is the worker, its child what the worker does."""
    context = multiprocessing.get_context("fork")
    started, end = context.Event(), context.Event()
    workers.register_worker("waiting-test", 1)
    assert not workers.describe_wait("waiting-test")
    workers.register_worker("", 1)
    child = context.Process(target=_work, args=(started, end))
    child.start()
    try:
        started.wait(20)
        assert workers.describe_wait() == "run dense before it, on the only worker"
    finally:
        child.kill()
        child.join()
    assert not workers.describe_wait(), "what was killed is at work no more"
    workers.deregister_worker("", 1)
    workers.deregister_worker("waiting-test", 1)


@pytest.mark.django_db
def test_the_status_of_a_campaign_names_the_campaign_that_waits_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaign 1 is finished; campaign 2 runs and waits for a worker."""
    books = make_collection("books")
    for state in ("finished", "running"):
        make_campaign(books, [], state=state)
    monkeypatch.setattr(notifications, "describe_wait", lambda campaign: f"why {campaign.number} waits")

    def status(*options: str) -> str:
        out = StringIO()
        call_command("status", "books", *options, stdout=out)
        return out.getvalue()

    assert "why" not in status("--campaign", "1")
    for options in (("--campaign", "2"), ()):
        assert "campaign 2 is waiting: why 2 waits" in status(*options)


def test_a_worker_that_says_nothing_for_long_is_alive_as_long_as_it_runs(instance: object) -> None:
    key = workers._workers_key("quiet-test")
    member = json.loads(workers._worker_member(1, ()))
    redis_client().zadd(key, {json.dumps(member): time.time() - 60})
    assert [one.pid for one in workers.live_workers("quiet-test")] == [member[1]]
    redis_client().delete(key)
    redis_client().zadd(key, {json.dumps(["another-machine", *member[1:]]): time.time() - 60})
    assert not workers.live_workers("quiet-test")
    redis_client().delete(key)


def test_a_worker_that_never_begins_is_called_what_it_is(instance: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends by itself ended, one that is silent for minutes was stopped."""
    monkeypatch.setattr(workers, "live_workers", lambda queue="": [])
    monkeypatch.setattr(worker_pool, "worker_command", lambda processes, name="judge": ["sleep", "30"])
    with worker_pool.WorkerPool(1) as own:
        assert not own.serves()
        first = own.children[0]
        assert not own.serves() and own.children == [first], "it is given minutes"
        assert "a worker starts" in own.waits
        monkeypatch.setattr(worker_pool, "SILENT_S", 0.0)
        with pytest.raises(worker_pool.CannotStart) as caught:
            for _ in range(4):
                own.serves()
    assert "was stopped" in str(caught.value) and "ended" not in str(caught.value)


@pytest.mark.slow
def test_a_waiting_command_brings_a_worker_where_none_is_free(worker, model_server, instance, monkeypatch):
    """Both processes are busy with a campaign whose calls take long; a run of BM25 takes a moment."""
    for name, value in {**instance, **FAST}.items():  # of the worker that is brought
        monkeypatch.setenv(name, value)
    model_server.script({"slow": {"verdict": "yes", "latency": 30.0}})
    begin(model_server, "slow", 200, "slow", "127.0.0.1")
    until(lambda: bool(workers.describe_wait()))
    collection_of(2, "small")
    err, began = StringIO(), time.monotonic()
    call_command("retrieve", "small", "--system", "bm25", "--wait", stdout=StringIO(), stderr=err)
    assert time.monotonic() - began < 45
