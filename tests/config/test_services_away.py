"""Redis away: pages are read and written all the same, quickly. PostgreSQL away: a page that says when to come back."""

import errno
import json
import logging
import os
import re
import signal
import time
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import OperationalError, connection
from django.db.utils import DatabaseError, InterfaceError
from django.test import Client
from django.utils import translation
from redis.exceptions import ConnectionError as RedisAway

from annotation.models import Role
from config import unavailability
from corpus.models import Judgment
from jobs import notifications, workers
from judges.engine import notifications as wakeups
from judges.models import Campaign
from judges.panels.offline_panel import ensure_offline
from store.disk import means_full_disk
from tests.annotators import at_work, count_judged, count_stored, make_people
from tests.factories import client_of, make_collection, make_member, make_pair
from tests.instances import until
from tests.judging_scene import make_scene
from tests.site.test_permissions import World, routes
from tests.speed import slowness

pytestmark = pytest.mark.django_db

QUICK_S = 1.0


@pytest.mark.weekly
def test_every_page_is_read_without_redis(redis_is_unavailable: None) -> None:
    world = World()
    slow, wrong = [], []
    for who in ("owner", "annotator"):
        client = world.client(who)
        client.raise_request_exception = False
        for route in routes(world):
            began = time.perf_counter()
            status = client.get(route.path).status_code
            if status >= 500:
                wrong.append((who, route.path, status))
            if time.perf_counter() - began > QUICK_S * slowness():
                slow.append(route.path)
    assert (wrong, slow) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_people_sign_in_judge_and_start_campaigns_without_redis(redis_is_unavailable: None) -> None:
    books = make_collection("books")
    make_scene(books, 2)
    make_member(books, "alice", Role.ADMIN)
    cache.clear()
    client = Client()
    answer = client.post("/accounts/login/", {"login": "alice", "password": "alice-password"})
    assert answer.status_code == 302
    page = client.post("/c/books/judge/next/", follow=True).content.decode()
    fields = {name: re.search(rf'name="{name}" value="([^"]*)"', page)[1] for name in ("item", "token")}
    client.post("/c/books/judge/submit/", {**fields, "grade": 1})
    assert Judgment.objects.count() == 1
    ensure_offline()
    make_pair(books)
    asked = {"panel": "offline", "policy": "debate", "rounds": 2, "confirm": "1"}
    assert client.post("/c/books/campaigns/start/", asked).status_code == 302
    assert Campaign.objects.latest("pk").state == "running", "workers find it once Redis is back"
    told = client.post("/c/books/canaries/ask/", {"judges": "all"}, follow=True).content.decode()
    assert "Test running in the background" not in told
    words, bob = "Redis does not respond. Pages work as usual", make_member(books, "bob")
    assert words in client.get("/c/books/").text and words not in client_of(bob).get("/c/books/").text
    client.post("/accounts/logout/")
    assert client.get("/c/books/").status_code == 302
    assert settings.SESSION_ENGINE == "django.contrib.sessions.backends.db", "no copy elsewhere that could come back"
    for password in ("wrong", "wrong", "wrong", "wrong", "wrong", "alice-password"):
        answer = Client().post("/accounts/login/", {"login": "alice", "password": password})
    assert answer.status_code == 429, "the limit on passwords holds"


def test_what_cannot_be_sent_is_not_waited_for(redis_is_unavailable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.perf_counter()
    assert not workers.has_workers() and not notifications.notify("some.task", 1)
    wakeups.notify_workers(1)
    assert time.perf_counter() - began < QUICK_S
    # Redis that goes while workers are told makes no error of a start.
    monkeypatch.setattr(wakeups, "is_redis_unavailable", lambda: False)
    wakeups.notify_workers(1)


REFUSED = OperationalError("connection failed: is the server running?")


def gone(*_: Any) -> None:
    raise REFUSED


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


class Shutdown(psycopg.OperationalError):
    sqlstate = "57P01"


class Deadlock(psycopg.OperationalError):
    sqlstate = "40P01"


def test_only_what_is_away_is_called_so() -> None:
    for error in (
        REFUSED, InterfaceError("connection already closed"), raised_from(OperationalError("terminating"), Shutdown()),
        RedisAway("refused"),
    ):  # fmt: skip
        assert unavailability.means_unavailable_service(error), error
    canceled = raised_from(OperationalError("timeout"), psycopg.errors.QueryCanceled())
    deadlock = raised_from(OperationalError("deadlock"), Deadlock())
    for error in (deadlock, canceled, DatabaseError("syntax"), ValueError("ours")):
        assert not unavailability.means_unavailable_service(error), error


@pytest.mark.parametrize(
    "place", ["annotation.home.overview.views.own_work", "django.contrib.sessions.backends.base.SessionBase.is_empty"]
)
def test_without_postgresql_a_page_says_when_to_come_back(monkeypatch, caplog, place: str) -> None:
    books = make_collection("books")
    client = Client(raise_request_exception=False)
    client.force_login(make_member(books, "alice").user)

    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.setattr(place, property(gone) if "Session" in place else gone)
    caplog.handler.addFilter(unavailability.TracebackFilter())
    with caplog.at_level(logging.ERROR):
        answer = client.get("/c/books/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    page = answer.content.decode()
    assert "Temporarily unavailable" in page and "Traceback" not in page
    assert "your last action may not have been" in page and "Judgments are never counted twice" in page
    assert "was not saved" not in page and '<html lang="en">' in page
    assert "Traceback" not in caplog.text and "request_f" in caplog.text
    with translation.override("zh-hans"):
        assert '<html lang="zh-hans">' in unavailability.build_unavailable_response().content.decode()


def test_without_postgresql_the_api_answers_with_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.setattr("api.authentication.find_token", gone)
    answer = Client(raise_request_exception=False).get("/api/v1/collections", headers={"Authorization": "Bearer x"})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 503 and "Try again" in answer.json()["detail"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_from_what_is_away(code: int) -> None:
    full = OSError(code, os.strerror(code))
    assert means_full_disk(full) and means_full_disk(raised_from(ValueError("not written"), full))
    answer = unavailability.respond_to_error(full)
    assert answer is not None and answer.status_code == 507 and "disk is full" in answer.text
    assert not any(map(means_full_disk, (REFUSED, OSError(errno.EACCES, "denied"))))


@pytest.mark.weekly
def test_nothing_is_lost_when_redis_and_postgresql_stop_under_eight_annotators(make_instance) -> None:
    """Check 10 of "True". The keeper is held meanwhile, so that nobody starts them again before it is time."""
    instance = make_instance(QUORUM_WEB_PROCESSES="1").migrated()
    site = instance.start("manage.py", "serve", "--port", "0", "--judge-workers", "0")
    people = make_people(instance, json.loads(site.stdout.readline() if site.stdout else "")["url"], 8)

    def away_for(service: str, seconds: float) -> int:
        """Stop it and start it again; how many judgments were taken meanwhile."""
        announced = instance.announced()
        os.kill(announced["pid"], signal.SIGSTOP)
        os.kill(announced["pids"][service], signal.SIGKILL if service == "redis" else signal.SIGINT)
        time.sleep(0.5)
        before = count_judged(people)
        time.sleep(seconds)
        meanwhile = count_judged(people) - before
        os.kill(announced["pid"], signal.SIGCONT)
        begun = count_judged(people)
        until(lambda: count_judged(people) > begun + 20, f"work after {service} came back")
        return meanwhile

    with at_work(people):
        until(lambda: count_judged(people) > 40, "the first judgments")
        without_redis = away_for("redis", 4)
        without_postgresql = away_for("postgres", 4)
        away_for("redis", 1)
    statuses = {status: sum(person.statuses.count(status) for person in people) for status in (0, 200, 409, 500, 503)}
    slowest = max(person.slowest for person in people)
    rows, items = count_stored(instance)
    print(f"{count_judged(people)} judged, {rows} stored; {statuses}")
    print(f"{without_redis} without Redis, slowest {slowest:.1f} s")
    assert {status for person in people for status in person.statuses} <= {0, 200, 409, 503}
    assert statuses[503] > 0 and without_postgresql == 0
    assert without_redis > 20
    said = [item for person in people for item in person.judged]
    assert len(said) == len(set(said)), "each answer counts once"
    assert rows == items and len(said) <= rows <= len(said) + len(people), "the last answers may have been on the way"
