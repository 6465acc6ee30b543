"""Bad values in the environment: one line that says what and where, exit code 2, and nothing was begun."""

import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from kombu import Connection

import embedded
from config import backup, env, startup
from store.sql import database_parameters
from tests.conftest import Manage
from tests.instances import ROOT, Instance
from tests.stages import first_quick

DATABASE, REDIS = "DATABASE_URL must look like postgres://", "REDIS_URL must look like redis://"
WRONG = [
    ("QUORUM_STORE", "nowhere://x", "is no address of a store"),
    ("QUORUM_STORE", "s3://", "names no bucket"),
    ("QUORUM_STORE", "share/files", "names no absolute path"),
    ("DATABASE_URL", "mysql://u:secret@db/quorum", DATABASE),
    ("DATABASE_URL", "postgres://u:secret@db:port/quorum", DATABASE),
    ("DATABASE_URL", "postgres://u:secret@db/quorum?colour=red", DATABASE),
    ("DATABASE_URL", "postgres://u:secret@db", DATABASE),
    ("REDIS_URL", "http://:secret@cache", REDIS),
    ("REDIS_URL", "redis://:secret@cache:6379/first", REDIS),
    ("REDIS_URL", "redis://:secret@cache:6379/0?colour=red", REDIS),
    ("REDIS_URL", "rediss://:secret@cache:6379/0?ssl_cert_reqs=CERT_REQUIRED", REDIS),
    ("CSRF_TRUSTED_ORIGINS", "quorum.example.org", "must begin with https://"),
    ("CSRF_TRUSTED_ORIGINS", "https://quorum.example.org/site", "name a host alone"),
    ("QUORUM_PRODUCTION", "enabled", "is neither on nor off"),
    ("QUORUM_WEB_PROCESSES", "0", "must be 1 or more"),
    ("QUORUM_WEB_THREADS", "many", "is not a whole number"),
    ("QUORUM_LEASE_S", "nan", "is not a number of 1 or more"),
    ("QUORUM_METRICS_PORT", "70000", "must be 65535 or less"),
    ("QUORUM_DRAIN_S", "a minute", "is not a number"),
    ("QUORUM_WEBHOOK_NETWORKS", "10.0.0.0/33", "name networks as"),
    ("QUORUM_SEARCH_HOSTS", "http://127.0.0.1:9200", "must be a host with its port"),
    ("QUORUM_OIDC_URL", "sso.example.org", "must be an address"),
    ("QUORUM_OIDC_URL", "https://sso.example.org", "set QUORUM_OIDC_CLIENT_ID too"),
    ("QUORUM_LOG", "xml", "is none of json, text"),
    ("QUORUM_LOG_LEVEL", "loud", "is none of DEBUG"),
    ("QUORUM_TRACES", "jaeger", "is none of otlp, console"),
    ("TIME_ZONE", "Mars/Olympus", "is no time zone"),
    ("QUORUM_SUB_PATH", "quorum", "must be a path that begins with a slash"),
    ("QUORUM_LINGER", "long", "is not a number"),
    ("SECRET_KEY_FILE", "/nowhere/key", "cannot be read"),
    ("QUORUM_STORED_KEYS_SECRET", "short", "fewer than 32 characters"),
]


@pytest.mark.parametrize(("name", "value", "says"), first_quick(WRONG))
def test_a_command_ends_with_one_line(make_instance: Callable[..., Instance], name: str, value: str, says: str) -> None:
    instance = make_instance(**{name: value})
    done = instance.manage("status", "books")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and name.removesuffix("_FILE") in done.stderr and says in done.stderr
    assert "secret@" not in done.stderr and not (instance.var / "postgres").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [("manage.py", "serve"), ("-m", "celery", "-A", "config", "worker")])
@pytest.mark.parametrize(("name", "value"), [("QUORUM_STORE", "nowhere://x"), ("TIME_ZONE", "Mars/Olympus")])
def test_servers_and_workers_do_the_same(make_instance, command: tuple[str, ...], name: str, value: str) -> None:
    instance = make_instance(**{name: value})
    command = (sys.executable, *command)
    done = subprocess.run(command, cwd=ROOT, env=instance.environment, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and name in done.stderr, done.stderr


def test_what_is_meant_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value, is_on in {"1": True, "Yes": True, "ON": True, "0": False, "off": False, "": False}.items():
        monkeypatch.setenv("QUORUM_DEBUG", value)
        assert env.flag("QUORUM_DEBUG") is is_on
    monkeypatch.setenv("QUORUM_SEARCH_HOSTS", "Search.Internal:8983, 127.0.0.1:9200,[::1]:9200")
    assert env.servers("QUORUM_SEARCH_HOSTS") == {"search.internal:8983", "127.0.0.1:9200", "[::1]:9200"}
    monkeypatch.setenv("CSRF_TRUSTED_ORIGINS", "https://quorum.example.org/, https://*.example.org")
    assert env.origins("CSRF_TRUSTED_ORIGINS") == ["https://quorum.example.org", "https://*.example.org"]
    monkeypatch.setenv("QUORUM_STORE", f"file://{tmp_path}")
    for database, cache in (
        ("postgresql://u:p%40ss@db:5433/quorum?sslmode=require", "rediss://:p@cache:6380/2"),
        ("postgres://u@/quorum?host=%2Frun%2Fpostgres", "unix:///run/redis.sock?db=1"),
    ):
        monkeypatch.setenv("DATABASE_URL", database)
        monkeypatch.setenv("REDIS_URL", cache)
        startup.refuse_unusable_settings()
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@db?dbname=labels&sslmode=require")
    named = embedded.database_settings(tmp_path)
    assert named["NAME"] == "labels" and named["OPTIONS"] == {"connect_timeout": "5", "sslmode": "require"}


def test_workers_check_the_certificate_of_redis_as_pages_do(monkeypatch, tmp_path) -> None:
    for option, requirement in (
        ("", ssl.CERT_REQUIRED),
        ("?ssl_ca_certs=/etc/ca.pem", ssl.CERT_REQUIRED),
        ("?ssl_cert_reqs=none", ssl.CERT_NONE),
    ):
        monkeypatch.setenv("REDIS_URL", f"rediss://:p@cache:6380/2{option}")
        with Connection(embedded.celery_url(tmp_path)) as broker:
            assert broker.ssl["ssl_cert_reqs"] == requirement


def test_workers_and_backups_connect_as_pages_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the certificates of DATABASE_URL, say: pages would work, and judging and backups would not."""
    wanted = {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem", "sslcert": "/etc/own.pem"}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {**connection.settings_dict["OPTIONS"], **wanted})
    found = database_parameters()
    assert wanted.items() <= found.items() and "context" not in found
    given: dict[str, str] = {}

    def run(command: list[str], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[bytes]:
        given.update(env)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(backup.subprocess, "run", run)
    backup.run_postgres_program("pg_dump")
    assert (given["PGSSLMODE"], given["PGSSLROOTCERT"], given["PGSSLCERT"]) == tuple(wanted.values())
    assert given["PGDATABASE"] == connection.settings_dict["NAME"]


def test_the_sites_processes_and_workers_ask_for_checked_connections(manage: Manage) -> None:
    """Django's pool then replaces a connection that the server ended before it is met."""
    code = "from django.conf import settings; import json; d = settings.DATABASES['default'];"
    code += "print(json.dumps([d['CONN_HEALTH_CHECKS'], d['OPTIONS']['pool']]))"
    done = manage("shell", "--no-imports", "-c", code, environment={"QUORUM_DB_POOL": "3"})
    assert done.json == [True, {"min_size": 1, "max_size": 3, "timeout": 30.0}]
