"""What workers do for large fillings, and what pages say while none is there."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEntry, Role
from benchmark.hole_filling import services, stages
from benchmark.hole_filling.services import advance_due
from benchmark.hole_filling.stages import ask_to_finish, cancel_filling, finish_requested
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels import versions
from benchmark.report import reports
from corpus.errors import BadInput
from corpus.models import Label
from jobs import workers
from judges.models import Campaign
from tests import benchmark_scene as scene
from tests.benchmark_scene import start_filling
from tests.factories import client_of, make_member
from tests.kept_scene import built_once

pytestmark = pytest.mark.django_db
HOME = "/c/books/benchmark/"
NOBODY = 'id="unattended"'


@pytest.fixture
@built_once
def books():
    return scene.collection_of_books()


@pytest.fixture
def runs(books):
    return scene.runs_of(books)


@pytest.fixture
def charlie(books):
    return client_of(make_member(books, "charlie", Role.ADMIN))


@pytest.fixture
def begun(books, runs, monkeypatch):
    """A filling that is large, of which people have settled five pairs."""
    monkeypatch.setattr(stages, "LIVE", 10)
    found = start_filling(collection=books, runs=runs, depth=5, policy="people")
    Label.objects.bulk_create(Label(pair_id=pair, grade=1, origin="people") for pair in found.pairs[:5])
    return stages.store_funnel(found)


def page(client: Client, begun: Filling) -> str:
    return client.get(f"{HOME}hole-filling/{begun.number}/").content.decode()


def test_a_large_filling_is_finished_by_a_worker(charlie, begun):
    answer = charlie.post(f"{HOME}hole-filling/{begun.number}/finish/")
    begun.refresh_from_db()
    assert (answer.status_code, begun.state, begun.after) == (302, "finishing", None)
    shown = page(charlie, begun)
    assert "5 resolved pairs" in shown and "<progress" in shown
    assert "/finish/" not in shown, "it is asked for already"
    charlie.post(f"{HOME}hole-filling/{begun.number}/finish/")
    advance_due()
    advance_due()
    begun.refresh_from_db()
    assert begun.state == "filled" and begun.after is not None
    assert begun.after.made_by == "charlie" and begun.after.counts["origins"]["people"] == 5
    assert Qrels.objects.filter(kind="filled").count() == 1
    assert "5 holes were found" in page(charlie, begun)
    assert charlie.get(f"{HOME}hole-filling/{begun.number}/", headers={"HX-Request": "true"}).status_code == 286


@pytest.mark.parametrize("live", [10, 1_000])
def test_who_asks_to_finish_once_more_ends_nothing(charlie, begun, monkeypatch, live):
    monkeypatch.setattr(stages, "LIVE", live)
    for _ in range(2):
        assert charlie.post(f"{HOME}hole-filling/{begun.number}/finish/").status_code == 302
    assert AuditEntry.objects.filter(act="filling.ended").count() == 1
    cancelled = start_filling(collection=begun.collection, runs=list(begun.runs.all()), depth=4, policy="people")
    cancel_filling(cancelled)
    with pytest.raises(BadInput, match="cancelled"):
        ask_to_finish(cancelled)


def test_a_worker_that_dies_while_it_finishes_leaves_nothing_behind(begun, books, runs, monkeypatch):
    def dies(*_: object, **__: object) -> None:
        raise SystemExit

    ask_to_finish(begun)
    again = start_filling(collection=books, runs=runs, depth=5, policy="people")
    assert (again, again.state) == (begun, "finishing"), "the same again waits for it"
    with monkeypatch.context() as broken:
        broken.setattr(stages, "timezone", type("Clock", (), {"now": staticmethod(dies)}))
        with pytest.raises(SystemExit):
            finish_requested(begun.pk)
    begun.refresh_from_db()
    assert (begun.state, Qrels.objects.filter(kind="filled").count()) == ("finishing", 0)
    assert finish_requested(begun.pk) and not finish_requested(begun.pk)
    assert Qrels.objects.filter(kind="filled").count() == 1


def test_what_cannot_be_finished_goes_on_and_says_why(charlie, begun, monkeypatch):
    Label.objects.all().delete()
    ask_to_finish(begun)
    assert finish_requested(begun.pk)
    begun.refresh_from_db()
    assert "resolved" in begun.error and begun.after is None
    assert begun.error in page(charlie, begun) and "/finish/" in page(charlie, begun)

    def breaks(*_: object) -> None:
        raise MemoryError("no room")

    begun.refresh_from_db()
    Label.objects.create(pair_id=begun.pairs[0], grade=1, origin="people")
    with monkeypatch.context() as broken:
        broken.setattr("benchmark.hole_filling.stages.make_version", breaks)
        ask_to_finish(begun)
        with pytest.raises(MemoryError):
            finish_requested(begun.pk)
    assert "error: no room" in page(charlie, begun)
    ask_to_finish(begun)
    assert finish_requested(begun.pk)
    begun.refresh_from_db()
    assert (begun.state, begun.error) == ("filled", "")


def test_pages_say_when_nobody_works_at_what_they_wait_for(charlie, books, runs, monkeypatch):
    """Being prepared, being judged, a report: after some seconds without a worker, until one comes."""
    monkeypatch.setattr(services, "AT_ONCE", 4)
    waiting = start_filling(collection=books, runs=runs, depth=5, panel="offline")
    before = versions.original_version(books)
    report = reports.request_report(books, before, before, runs)
    run = Run.objects.create(collection=books, name="slow", kind="bm25")
    pages = ["", "runs/", f"runs/{run.pk}/", "hole-filling/", f"hole-filling/{waiting.number}/"]
    assert not [part for part in pages if NOBODY in charlie.get(HOME + part).content.decode()], "they have just begun"
    began = timezone.now() - timedelta(seconds=30)
    for model, one in ((Filling, waiting), (Run, run), (type(report), report)):
        model.objects.filter(pk=one.pk).update(created_at=began)
    for part in pages:
        shown = charlie.get(HOME + part).content.decode()
        assert NOBODY in shown and "<code>manage.py serve</code>" in shown, part
    assert "Cancel hole filling" in page(charlie, waiting)
    with monkeypatch.context() as served:
        served.setattr(workers, "live_workers", lambda *_: [workers.Worker("here", 1, 1)])
        assert not [part for part in pages if NOBODY in charlie.get(HOME + part).content.decode()]
    advance_due()
    waiting.refresh_from_db()
    assert waiting.state == "judging" and NOBODY in page(charlie, waiting), "its campaign runs"
    Campaign.objects.update(state="paused")
    assert NOBODY not in page(charlie, waiting), "somebody paused it"
