"""Old code refuses the tables of a newer version: no command, server or worker of it writes there."""

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from config import health, startup
from tests.instances import PATIENCE
from tests.stages import first_slow

pytestmark = pytest.mark.django_db

LATER = ("judges", "9999_of_a_later_version")


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
