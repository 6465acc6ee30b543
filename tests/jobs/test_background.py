"""Background work on a row: asked for once, taken up again after its worker was killed (docs/operators.md)."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from annotation.exports import listing, snapshots
from annotation.exports.options import ExportOptions
from annotation.models.snapshots import Snapshot
from annotation.tasks import make_snapshot
from jobs import background, leases
from jobs.models import BackgroundJob
from tests.engine_parts import collection_of

pytestmark = pytest.mark.django_db
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
