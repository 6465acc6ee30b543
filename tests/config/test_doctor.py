"""`manage.py doctor`: faults are planted one by one, and each is found with its remedy."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from config import staticfiles
from config.doctor import checks, machine, services, work
from jobs.models import BackgroundJob
from judges.models import Panel, Work
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_pair
from tests.instances import Instance
from tests.plugin_browser import free_port

pytestmark = pytest.mark.django_db
Found = list[dict[str, str]]


@pytest.fixture(autouse=True)
def _well(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """An instance that was served once and has a worker; its folder is its own, so that nothing is left for others."""
    settings.VAR = tmp_path / "var"
    settings.STATIC_ROOT = settings.VAR / "static"
    settings.SILENCED_SYSTEM_CHECKS = ["templates.E002"]  # pytest-django lets unknown variables of templates fail.
    settings.STATIC_ROOT.mkdir(parents=True)
    (settings.STATIC_ROOT / "staticfiles.json").touch()
    (settings.VAR / "static.stamp").write_text(staticfiles.sources_fingerprint())
    monkeypatch.setattr(work, "live_workers", lambda queue="": [SimpleNamespace(slots=2)])


def doctor(capsys: pytest.CaptureFixture[str], code: int) -> Found:
    """What it found, with the exit code that is expected."""
    capsys.readouterr()
    try:
        call_command("doctor", json=True)
        ended = 0
    except SystemExit as end:
        ended = int(end.code or 0)
    out = capsys.readouterr()
    assert ended == code, out.err
    document = json.loads(out.out)
    assert document["well"] is (code == 0)
    return list(document["findings"])


def test_a_well_instance_has_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(capsys, 0)
    assert [one["check"] for one in found if one["health"] == "problem"] == []
    assert {one["check"] for one in found} == {check.name for check in checks.CHECKS}
    assert all(one["remedy"] for one in found if one["health"] != "ok")
    call_command("doctor")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "No problem was found."
    assert any(line.startswith("ok       postgresql: version") for line in lines)


class Scene(NamedTuple):
    """What a plant may change; one that is a dictionary changes settings alone."""

    settings: Any
    patch: pytest.MonkeyPatch


def plant_file_in_place_of_folder(scene: Scene) -> None:
    (scene.settings.VAR / "uploads").touch()


def plant_full_disk(scene: Scene) -> None:
    scene.patch.setattr(machine.shutil, "disk_usage", lambda path: SimpleNamespace(free=90_000_000, total=10**11))


def plant_store_away(scene: Scene) -> None:
    place = scene.settings.VAR / "no-folder"
    place.touch()
    scene.settings.STORE = f"file://{place}"


def plant_old_static_files(scene: Scene) -> None:
    (scene.settings.VAR / "static.stamp").write_text("of another version")


def plant_postgresql_away(scene: Scene) -> None:
    def away() -> None:
        raise OperationalError("connection refused")

    scene.patch.setattr(connection, "cursor", away)
    scene.patch.setattr(connection, "close", lambda: None)


def plant_pending_migration(scene: Scene) -> None:
    MigrationRecorder.Migration.objects.filter(app="training").order_by("-pk")[:1].get().delete()


def plant_newer_schema(scene: Scene) -> None:
    MigrationRecorder(connection).record_applied("judges", "9999_from_the_future")


def plant_clock_off(scene: Scene) -> None:
    scene.patch.setattr(services, "time", SimpleNamespace(time=lambda: time.time() - 90))


def plant_unset_key(scene: Scene) -> None:
    scene.patch.delenv("DOCTORS_OPENAI_KEY", raising=False)
    make_judge("one", api_key_env="DOCTORS_OPENAI_KEY")
    Panel.objects.create(name="main", ensemble=["one"])


def plant_no_worker(scene: Scene) -> None:
    scene.patch.setattr(work, "live_workers", lambda queue="": [])
    make_campaign(make_collection("books"), [make_judge("one")], state="running")


def plant_stuck_lease(scene: Scene) -> None:
    books = make_collection("books")
    late = timezone.now() - timedelta(hours=1)
    campaign = make_campaign(books, [make_judge("one")], state="running")
    Work.objects.create(campaign=campaign, pair=make_pair(books), state="running", lease_until=late)


def plant_stuck_job(scene: Scene) -> None:
    late = timezone.now() - timedelta(hours=1)
    BackgroundJob.objects.create(kind="exports.write", subject=1, state="running", lease_until=late)


def plant_refused_account(scene: Scene) -> None:
    why = "one, account openai KEY: 401 the key is not valid"
    make_campaign(make_collection("books"), [make_judge("one")], state="paused", paused_because=why)


def plant_missing_package(scene: Scene) -> None:
    scene.patch.setattr(machine, "compare_packages", lambda: (["django-htmx"], []))


# What QUORUM_MAX_CONNECTIONS says, and the server does not.
MANY = {"WEB_PROCESSES": 64, "WEB_THREADS": 64, "MAX_CONNECTIONS": 5_000}
FAULTS: dict[str, tuple[Callable[[Scene], None] | dict[str, Any], str, str]] = {
    "secret key": ({"SECRET_KEY": "short"}, "it has 5 characters", "set SECRET_KEY to 50 random characters"),
    "folder": (plant_file_in_place_of_folder, "no folders that can be written: uploads", "move them away"),
    "disk": (plant_full_disk, "0.1 of 100.0 GB are free", "remove old backups"),
    "store": (plant_store_away, "failed (", "check QUORUM_STORE"),
    "static files": (plant_old_static_files, "of another version", "start `manage.py serve` again"),
    "postgresql": (plant_postgresql_away, "does not answer (connection refused)", "check DATABASE_URL"),
    "postgresql, too many": (MANY, "the settings may open", "raise max_connections"),
    "migrations": (plant_pending_migration, "1 are pending", "run `manage.py migrate`"),
    "migrations, newer": (plant_newer_schema, "judges.9999_from_the_future", "install the version"),
    "clock": (plant_clock_off, "'s clock is 90.0 s ahead of this machine's", "NTP"),
    "keys": (plant_unset_key, "DOCTORS_OPENAI_KEY is not set here, the key of one", "set DOCTORS_OPENAI_KEY"),
    "workers": (plant_no_worker, "none answers, and 1 campaigns", "manage.py serve --judge-workers 1"),
    "leases": (plant_stuck_lease, "1 pairs are held by workers that are gone, the first for 60 min", "takes them up"),
    "leases, of jobs": (plant_stuck_job, "is held by a worker that is gone since 60 min", "it continues from what is"),
    "accounts": (plant_refused_account, "401 the key is not valid", "run `manage.py campaign books resume`"),
    "mail": ({"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": free_port()}, "does not take mail", "check EMAIL_HOST"),
    "versions": (plant_missing_package, "packages are missing: django-htmx", "run `make install`"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_its_remedy_is_named(fault: str, settings, monkeypatch, capsys) -> None:
    plant, says, remedy = FAULTS[fault]
    if isinstance(plant, dict):
        for name, value in plant.items():
            setattr(settings, name, value)
    else:
        plant(Scene(settings, monkeypatch))
    problems = [one for one in doctor(capsys, 1) if one["health"] == "problem"]
    assert len(problems) == 1, problems
    assert problems[0]["check"] == fault.partition(",")[0]
    assert says in problems[0]["says"] and remedy in problems[0]["remedy"]


def test_redis_away_is_a_problem_and_what_needs_it_is_not_looked_at(redis_is_unavailable: None, capsys) -> None:
    found = doctor(capsys, 1)
    (redis,) = [one for one in found if one["health"] == "problem"]
    assert redis["check"] == "redis" and "check REDIS_URL" in redis["remedy"]
    assert [one["check"] for one in found if one["health"] == "unknown"] == ["workers"]


def test_a_check_that_breaks_says_so_and_the_others_go_on(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: 1 / 0)
    broken = [one for one in doctor(capsys, 1) if one["health"] == "problem"]
    assert [one["check"] for one in broken] == ["disk"] and "division by zero" in broken[0]["says"]


@pytest.mark.slow
def test_it_runs_where_no_command_does(make_instance: Callable[..., Instance]) -> None:
    """PostgreSQL and Redis are named by URL, and nobody listens there."""
    port = free_port()
    database = f"postgres://quorum@127.0.0.1:{port}/quorum"
    instance = make_instance(DATABASE_URL=database, REDIS_URL=f"redis://127.0.0.1:{port}/0")
    instance.var.mkdir()
    done = instance.manage("doctor", "--json")
    assert done.returncode == 1 and done.stderr.endswith("\n2 problems: postgresql, redis\n"), done.stderr
    wrong = {one["check"]: one for one in json.loads(done.stdout)["findings"] if one["health"] == "problem"}
    assert set(wrong) == {"postgresql", "redis"} and "check DATABASE_URL" in wrong["postgresql"]["remedy"]
