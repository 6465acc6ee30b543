"""GET /healthz and /readyz: what probes of load balancers, Docker and `serve` are told."""

from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from config import health
from config.operating import web_metrics
from config.startup import Schema

pytestmark = pytest.mark.django_db


def test_probes_need_neither_an_allowed_name_nor_tls(settings) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["quorum.example"], True
    client = Client(headers={"host": "10.0.0.7:8000"})
    assert client.get("/healthz").json() == {"alive": True}
    assert client.get("/readyz").json() == {"ready": True, "reasons": [], "degraded": []}
    assert client.get("/accounts/login/").status_code == 400


def test_without_redis_it_lives_and_is_ready_and_says_what_waits(redis_is_unavailable: None) -> None:
    assert Client().get("/healthz").status_code == 200
    answer = Client().get("/readyz")
    assert answer.status_code == 200 and answer.json()["ready"]
    (line,) = answer.json()["degraded"]
    assert line.startswith("Redis is not") and "judge calls wait" in line


def test_without_postgresql_it_lives_and_is_not_ready(monkeypatch, caplog: pytest.LogCaptureFixture) -> None:
    def away() -> None:
        raise OperationalError('connection to "db.internal" refused\nfor user "quorum"')

    monkeypatch.setattr(connection, "cursor", away)
    monkeypatch.setattr(connection, "close", lambda: None)
    assert Client().get("/healthz").status_code == 200
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    (reason,) = answer.json()["reasons"]
    assert reason.startswith("PostgreSQL is not")
    assert "db.internal" not in answer.text and '"db.internal" refused for' in caplog.text


def test_a_node_that_can_store_nothing_lacks_migrations_or_is_about_to_end_lives_and_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    def reason() -> str:
        assert Client().get("/healthz").status_code == 200
        answer = Client().get("/readyz")
        return "" if answer.status_code == 200 else " ".join(answer.json()["reasons"])

    with monkeypatch.context() as full:
        full.setattr(health, "MIN_FREE_BYTES", 1 << 62)
        assert reason() == "The disk is full"
    settings.VAR = tmp_path / "gone"
    assert reason() == "The folder VAR cannot be read"
    settings.VAR = tmp_path
    with monkeypatch.context() as older:
        older.setattr(health, "_is_migrated", False)
        older.setattr(health, "read_schema", lambda: Schema([], is_pending=True, is_empty=False))
        assert "run manage.py migrate" in reason()
    monkeypatch.setenv(web_metrics.FOLDER, str(tmp_path))
    assert reason() == ""
    (tmp_path / health.STOPPING_FILE).touch()
    assert "stopping" in reason()
