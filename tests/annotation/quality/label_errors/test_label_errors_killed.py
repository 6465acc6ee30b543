"""A worker that is killed while it looks for label errors: another one comes to the same list."""

import os
import signal
import subprocess

import pytest
from django.db import connections

from annotation.models import StoredResult
from annotation.quality.label_errors import suspects
from config.env import ROOT
from corpus.models import Label, Pair
from jobs import background
from jobs.models import BackgroundJob
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from judges.workers import worker_pool
from tests.engine_parts import FAST
from tests.evidence import make_assessor, make_judgment
from tests.instances import until
from tests.judged_books import make_books


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_label_errors_whose_worker_is_killed_in_the_middle_are_found_by_another(instance):
    books = make_books()
    wrong = Pair.objects.filter(collection=books).order_by("pk")[4]
    make_judgment(wrong, make_assessor(books, "bob"), 2)
    Label.objects.filter(pair=wrong).update(grade=2, origin="people")
    workers: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = worker_pool.worker_command(1, f"label-errors-{len(workers)}")
        workers.append(spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL))
        return workers[-1]

    def is_reading() -> bool:
        return BackgroundJob.objects.filter(phase="reading votes").exists()

    other = connections.create_connection("default")
    try:
        first = start()
        until(lambda: bool(live_workers()))
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("LOCK TABLE judges_attempt IN ACCESS EXCLUSIVE MODE")  # it waits in its middle
        suspects.LABEL_ERRORS.refresh(books)
        row = StoredResult.objects.get()
        until(is_reading)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        other.rollback()
        assert background.is_unfinished(suspects.LABEL_ERRORS.task, row.pk) and row.values is None
        start()
        until(lambda: not background.is_unfinished(suspects.LABEL_ERRORS.task, row.pk))
    finally:
        other.close()
        stop_children(workers)
    stored = StoredResult.objects.get(collection=books).values
    assert stored["suspects"][0]["pair"] == wrong.pk
    assert stored == suspects.find_suspects(books)
    assert Label.objects.get(pair=wrong).grade == 2
