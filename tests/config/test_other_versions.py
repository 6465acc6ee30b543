"""Other versions: a backup that 0.1.0 wrote comes back whole, and old code refuses the tables of newer code.

`version_0_1_0/instance.tar.gz` is what that version had judged offline, with judgments of two
annotators (one taken back by each), three exports and a model's row. `rows.json` is what `rows.py`
and `status` printed there; `make.py` made both.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from config import health, startup
from tests.instances import PATIENCE, Instance
from tests.stages import first_slow

HERE = Path(__file__).parent / "version_0_1_0"
NAME = "owls"
PAGES = """
import json
from django.conf import settings
from django.test import Client
from allauth.usersessions.models import UserSession
from annotation.models import User
settings.ALLOWED_HOSTS = ["testserver"]
plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # nothing is collected here
settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
owner, client = User.objects.get(username="owner-1"), Client()
client.force_login(owner)
row = {"user": owner, "ip": "127.0.0.1", "user_agent": "tests"}
UserSession.objects.get_or_create(session_key=client.session.session_key, defaults=row)
places = ["", "pairs/", "campaigns/", "exports/", "training/", "quality/", "members/"]
print(json.dumps({place: client.get(f"/c/owls/{place}").status_code for place in places}))
"""
REBUILD = """
import json
from corpus.labels import rebuild_labels
from corpus.models import Collection
print(json.dumps([rebuild_labels(Collection.objects.get()), list(Collection.objects.values_list("lab", flat=True))]))
"""


def run(instance: Instance, *args: object) -> Any:
    done = instance.manage(*map(str, args))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def restored() -> Iterator[Instance]:
    """The older instance, restored and migrated by this version."""
    place = Path(tempfile.mkdtemp(prefix="quorum-older-", dir="/tmp"))
    instance = Instance(place / "var", QUORUM_LINGER="20").migrated()
    run(instance, "restore", HERE / "instance.tar.gz", "--json")
    done = instance.manage("migrate", "-v0")
    assert done.returncode == 0, done.stderr
    yield instance
    instance.end()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    """What the older version had recorded of itself."""
    return dict(json.loads((HERE / "rows.json").read_text()))


@pytest.fixture(scope="module")
def after(restored: Instance) -> dict[str, Any]:
    """The same of what was restored."""
    return dict(run(restored, "shell", "-v0", "-c", (HERE / "rows.py").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["labels", "judgments", "campaigns", "exports", "models"])
def test_rows_are_what_they_were(before: dict[str, Any], after: dict[str, Any], kind: str) -> None:
    assert kind == "labels" or (before[kind] and after[kind] == before[kind])
    assert before["all"][kind]["rows"] > 0 and after["all"][kind] == before["all"][kind]


def keys_of(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Of `new` what `old` has too: counts that were added since say nothing of it."""
    return {key: keys_of(value, new[key]) if isinstance(value, dict) else new[key] for key, value in old.items()}


@pytest.mark.slow
def test_status_says_what_it_said(restored: Instance, before: dict[str, Any]) -> None:
    assert keys_of(before["status"], run(restored, "status", NAME, "--json")) == before["status"]
    assert run(restored, "shell", "-v0", "-c", REBUILD) == [0, [True]], "labels derived again, and the Lab's pages"
    assert set(run(restored, "shell", "-v0", "-c", PAGES).values()) == {200}, "an owner reads every page"


@pytest.mark.slow
def test_files_of_exports_and_models_are_where_their_rows_say(restored: Instance, before: dict[str, Any]) -> None:
    listed = {
        Path(one["folder"].replace("VAR", str(restored.var)), file["name"]): file["sha256"]
        for one in before["exports"]
        for file in one["manifest"]["files"]
    }
    assert listed == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in listed}
    (model,) = before["models"]
    assert Path(model["folder"].replace("VAR", str(restored.var)), "config.json").exists()


LATER = ("judges", "9999_of_a_later_version")


@pytest.mark.django_db
def test_a_process_of_an_older_version_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    MigrationRecorder(connection).record_applied(*LATER)
    monkeypatch.setattr(health, "_is_migrated", False)
    answer = Client().get("/readyz")
    (reason,) = answer.json()["reasons"]
    assert answer.status_code == 503 and "newer version" in reason
    assert Client().get("/healthz").status_code == 200
    assert ".".join(LATER) + "." in startup.read_schema().refusal
    MigrationRecorder(connection).record_applied("judges", "9998_of_a_later_version")
    assert ".".join(LATER) + " and 1 more." in startup.read_schema().refusal


@pytest.mark.django_db
def test_what_a_migration_replaces_is_known_where_all_of_it_was_applied() -> None:
    """Version 0.1.0 had two migrations where this one has api.0001_version_0_1_0."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("api", "0001_version_0_1_0")
    recorder.record_unapplied("api", "0002_database")
    assert startup.read_schema().unknown == ["api.0001_initial"]
    recorder.record_applied("api", "0002_database")
    assert startup.read_schema() == startup.Schema([], is_pending=False, is_empty=False)


@pytest.mark.parametrize("by_url", first_slow([False, True]), ids=["embedded", "by URL"])
def test_old_code_refuses_newer_tables_until_a_backup_of_before_is_restored(make_instance, tmp_path, by_url) -> None:
    services = make_instance().migrated()
    holder = services.hold()
    backup = str(tmp_path / "before.tar")
    assert services.manage("backup", backup).returncode == 0
    services.sql(f"INSERT INTO django_migrations (app, name, applied) VALUES ('{LATER[0]}', '{LATER[1]}', now())")
    old = services
    if by_url:
        announced = services.announced()
        old = make_instance(DATABASE_URL=announced["database"], REDIS_URL=announced["redis"], SECRET_KEY="s" * 50)
    else:
        (services.var / "postgres" / "migrated").write_text("of the later version")
    worker = ("-m", "celery", "-A", "config", "worker", "--loglevel", "WARNING")
    for command in (("manage.py", "status", "books"), ("manage.py", "migrate"), ("manage.py", "serve"), worker):
        child = old.start(*command)
        out, err = child.communicate(timeout=PATIENCE)
        assert (child.returncode, out) == (2, "") and err.count("\n") == 1, err
        assert "another version" in err and LATER[1] in err
    restored = old.manage("restore", backup)
    assert restored.returncode == 0, restored.stderr
    assert "no collection" in old.manage("status", "books").stderr
    assert holder.poll() is None
