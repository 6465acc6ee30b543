"""Long work: found without a message, asked for once, and who lost a lease changes nothing (docs/operators.md)."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

import benchmark.tasks  # noqa: F401
from annotation.exports import listing, snapshots
from annotation.exports.options import ExportOptions
from annotation.models.snapshots import Snapshot
from annotation.tasks import make_snapshot
from benchmark.models import Run
from jobs import background, leases, notifications, tasks
from jobs.models import BackgroundJob
from tests.engine_parts import collection_of
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return Run.objects.create(collection=make_collection("wings"), name="one", kind="bm25")


def test_a_job_without_a_message_is_told_of_once_and_not_at_every_look(run: Run, monkeypatch) -> None:
    sent: list[str] = []
    notifications.redis_client().delete(notifications.redis_key("told", "benchmark.make_run"))
    monkeypatch.setattr(tasks, "notify", lambda task, **_queue: sent.append(task))
    monkeypatch.setattr(tasks, "CHORES", [])
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    tasks.look_for_jobs(["gpu"])
    assert sent == [], "a worker of another queue"
    tasks.look_for_jobs(["judge"])
    tasks.look_for_jobs(["judge"])
    assert sent == ["benchmark.make_run"]
    notifications.redis_client().delete(notifications.redis_key("told", "benchmark.make_run"))


def test_a_chore_that_fails_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    chores = [("", lambda: 1 / 0), ("", lambda: done.append(1))]
    for name, value in (("CHORES", chores), ("KINDS", []), ("close_old_connections", lambda: None)):
        monkeypatch.setattr(tasks, name, value)
    tasks.look_for_jobs(["judge"])
    assert done == [1]


def test_a_job_that_got_further_is_given_back_without_its_earlier_claims(run: Run) -> None:
    Run.objects.update(attempts=3)
    job = leases.claim(Run)
    assert job is not None and job.attempts == 4
    leases.Lease(job).progress(1, 2)
    leases.give_back(job)
    run.refresh_from_db()
    assert run.attempts == 0


def test_whoever_lost_the_lease_neither_renews_nor_ends_the_job(run: Run) -> None:
    late = leases.claim(Run)
    assert late is not None and leases.claim(Run) is None
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    now = leases.claim(Run)
    assert now is not None and now.fencing_token == late.fencing_token + 1
    assert not leases.Lease(late).renew(done=9) and not leases.finish(late, late.FAILED, error="late")
    leases.give_back(late)
    assert leases.Lease(now).renew(done=3) and leases.finish(now, now.READY)
    run.refresh_from_db()
    assert (run.state, run.done, run.error) == ("ready", 3, "")


def test_a_running_job_is_asked_to_end_and_a_waiting_one_ends_at_once(run: Run) -> None:
    assert leases.ask_to_cancel(run)
    run.refresh_from_db()
    assert run.state == "cancelled" and not leases.ask_to_cancel(run)
    assert leases.resume(run) and leases.claim(Run) is not None
    assert leases.ask_to_cancel(run)
    run.refresh_from_db()
    assert run.state == "running" and run.cancel_asked


def test_an_error_ends_the_job_and_a_stopping_worker_gives_it_back(run: Run) -> None:
    def fails(_lease: leases.Lease) -> Any:
        raise ValueError("no\nway")

    for work, stopping, state, error in (
        (lambda lease: lease.should_stop(), lambda: True, "waiting", ""),
        (fails, lambda: False, "failed", "Unexpected error: no way"),
    ):
        job = leases.claim(Run)
        assert job is not None
        leases.perform(job, work, should_stop=stopping)
        run.refresh_from_db()
        assert (run.state, run.error, run.attempts) == (state, error, int(state == "failed"))


KIND = "tests.compute"


def expire() -> None:
    BackgroundJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def begin() -> Snapshot:
    return snapshots.create_snapshot(collection_of(2), ExportOptions(format="csv"))


def test_who_asks_while_a_job_is_unfinished_joins_it() -> None:
    first, is_new = background.enqueue(KIND, 7, judges=[1])
    assert is_new and background.is_unfinished(KIND, 7)
    assert background.enqueue(KIND, 7, judges=[2]) == (first, False)
    assert background.enqueue(KIND, 8)[1] and background.enqueue("tests.other", 7)[1]
    held = leases.claim(BackgroundJob, kind=KIND, subject=7)
    assert held is not None and held.arguments == {"judges": [1]}
    assert background.enqueue(KIND, 7) == (first, False), "it runs"
    assert leases.finish(held, held.FAILED, error="no way")
    assert background.newest(KIND, [7, 9])[7].error == "no way" and not background.is_unfinished(KIND, 7)
    again, is_new = background.enqueue(KIND, 7)
    assert is_new and background.newest(KIND, [7]) == {7: again}


def test_what_a_killed_worker_left_of_an_export_goes_and_another_makes_it() -> None:
    snapshot = begin()
    background.enqueue(listing.EXPORT_TASK, snapshot.pk)
    assert leases.claim(BackgroundJob, kind=listing.EXPORT_TASK) is not None
    left = Path(snapshot.folder)
    left.mkdir(parents=True)
    (left / ".labels.csv.part").write_text("half")
    make_snapshot()
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_in_progress and left.exists(), "its lease holds"
    expire()
    make_snapshot()
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_ready and not left.exists() and len(list(Path(shown.snapshot.folder).iterdir())) == 2


def test_a_worker_that_comes_back_late_does_not_spoil_the_export_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    late = begin()
    background.enqueue(listing.EXPORT_TASK, late.pk)

    def stands_still(*_arguments: object) -> None:
        expire()
        monkeypatch.undo()
        make_snapshot()
        raise OSError("its files are gone")

    monkeypatch.setattr(snapshots, "write_files", stands_still)
    make_snapshot()
    (shown,) = listing.list_exports(late.collection)
    assert shown.is_ready and background.newest(listing.EXPORT_TASK, [late.pk])[late.pk].state == "ready"


def test_an_export_says_how_far_it_is_and_that_nobody_goes_on_with_it() -> None:
    snapshot = begin()
    background.enqueue(listing.EXPORT_TASK, snapshot.pk)
    leases.Lease(leases.claim(BackgroundJob, kind=listing.EXPORT_TASK)).progress(1200, 0)
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_in_progress and shown.rows_so_far == 1200
    BackgroundJob.objects.update(attempts=leases.MOST_ATTEMPTS)
    expire()
    make_snapshot()
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_lost and not shown.is_in_progress
