"""Background work on a row: asked for once, taken up again after its worker was killed (docs/jobs.md)."""

import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation.exports import listing, snapshots
from annotation.exports.formats import FORMATS
from annotation.models.snapshots import Snapshot
from annotation.tasks import make_snapshot
from config.env import ROOT
from jobs import background, leases
from jobs.models import BackgroundJob
from jobs.processes import spawn_child, stop_children
from judges.engine import worker_pool
from tests.engine_parts import FAST, collection_of
from tests.instances import until

pytestmark = pytest.mark.django_db
KIND = "tests.compute"


def expire() -> None:
    BackgroundJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def begin() -> Snapshot:
    return snapshots.create_snapshot(collection=collection_of(2), form=FORMATS["csv"])


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
    background.enqueue(listing.MAKE, snapshot.pk)
    assert leases.claim(BackgroundJob, kind=listing.MAKE) is not None
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
    background.enqueue(listing.MAKE, late.pk)

    def stands_still(*_arguments: object) -> None:
        expire()
        monkeypatch.undo()
        make_snapshot()
        raise OSError("its files are gone")

    monkeypatch.setattr(snapshots, "write_files", stands_still)
    make_snapshot()
    (shown,) = listing.list_exports(late.collection)
    assert shown.is_ready and background.newest(listing.MAKE, [late.pk])[late.pk].state == "ready"


def test_an_export_says_how_far_it_is_and_that_nobody_goes_on_with_it() -> None:
    snapshot = begin()
    background.enqueue(listing.MAKE, snapshot.pk)
    job = leases.claim(BackgroundJob, kind=listing.MAKE)
    assert job is not None
    leases.Lease(job).progress(1200, 0)
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_in_progress and shown.rows_so_far == 1200
    BackgroundJob.objects.update(attempts=leases.MOST_ATTEMPTS)
    expire()
    make_snapshot()
    (shown,) = listing.list_exports(snapshot.collection)
    assert shown.is_lost and not shown.is_in_progress


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_export_whose_worker_is_killed_in_the_middle_is_made_by_another(instance: dict[str, str]) -> None:
    snapshot = begin()
    background.enqueue(listing.MAKE, snapshot.pk)
    workers: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = worker_pool.worker_command(1, f"export-{len(workers)}")
        workers.append(spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL))
        return workers[-1]

    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE corpus_label IN ACCESS EXCLUSIVE MODE")  # the export waits in its middle
            first = start()
            until(Path(snapshot.folder).exists)
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        assert background.is_unfinished(listing.MAKE, snapshot.pk)
        start()
        until(lambda: listing.list_exports(snapshot.collection)[0].is_ready)
    finally:
        stop_children(workers)
    snapshot.refresh_from_db()
    assert len(list(Path(snapshot.folder).iterdir())) == 2
    assert [folder.name for folder in snapshots.exports_folder(snapshot.collection).iterdir()] == [
        Path(snapshot.folder).name
    ]
