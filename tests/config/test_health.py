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


def test_without_postgresql_it_lives_and_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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


@pytest.mark.parametrize("reason", ["The disk is full", "The folder VAR cannot be read"])
def test_a_node_that_can_store_nothing_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path, reason: str
) -> None:
    if "full" in reason:
        monkeypatch.setattr(health, "MIN_FREE_BYTES", 1 << 62)
    else:
        settings.VAR = tmp_path / "gone"
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, [reason])
    assert Client().get("/healthz").status_code == 200
    monkeypatch.undo()
    settings.VAR = tmp_path
    assert Client().get("/readyz").json()["ready"]


def test_a_database_that_lacks_migrations_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_is_migrated", False)
    monkeypatch.setattr(health, "read_schema", lambda: Schema([], is_pending=True, is_empty=False))
    answer = Client().get("/readyz")
    assert answer.status_code == 503 and "run manage.py migrate" in answer.json()["reasons"][0]
    monkeypatch.undo()
    assert Client().get("/readyz").status_code == 200


def test_a_node_that_is_about_to_end_lives_and_is_not_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(web_metrics.FOLDER, str(tmp_path))
    assert Client().get("/readyz").status_code == 200
    (tmp_path / health.STOPPING_FILE).touch()
    answer = Client().get("/readyz")
    (reason,) = answer.json()["reasons"]
    assert answer.status_code == 503 and "stopping" in reason
    assert Client().get("/healthz").status_code == 200
