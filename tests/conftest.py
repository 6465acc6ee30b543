"""Fixtures of all tests: one database with what the migrations put there, and programs that work on it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.db import connection
from django.dispatch import receiver
from django.http import HttpRequest
from django.test import TransactionTestCase
from django.utils import translation

from config import env
from tests import migrated
from tests.emptying import Emptier
from tests.instances import PATIENCE, Instance
from tests.models.fixtures import _llama_server_process, chroma_server, llama_server, minilm_folder, smollm_gguf
from tests.modelserver.fixtures import _model_server_process, model_server

# Imported by each module that asks for one, a server would be started for each of them.
__all__ = [
    "_llama_server_process",
    "_model_server_process",
    "chroma_server",
    "llama_server",
    "minilm_folder",
    "model_server",
    "smollm_gguf",
]


@dataclass(frozen=True)
class Finished:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


def pytest_configure() -> None:
    # Pages are rendered without collected files; the pages that a browser opens come from a server with real ones.
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.STATIC_ROOT = settings.VAR / "no-static"  # each new client would look through the collected files
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # The same few examples in every run, and once a week many others. How long one takes depends on
    # the machine: the first text of a clean clone builds a table of all characters, which takes
    # seconds on busy cores.
    patient = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.register_profile("steady", patient, derandomize=True, max_examples=25)
    hypothesis.settings.register_profile("weekly", patient, max_examples=500, print_blob=True)
    hypothesis.settings.load_profile("steady")


@receiver(user_logged_in)
def _remember_the_session(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    """`force_login` leaves what the sign-in page leaves: the row by which a session is listed, ended and read."""
    from allauth.usersessions.models import UserSession

    if request.session.session_key is None:  # a second person in the same client: the old session was thrown away
        request.session.save()
    row = {"user": user, "ip": "127.0.0.1", "user_agent": "tests"}
    UserSession.objects.get_or_create(session_key=request.session.session_key, defaults=row)


@pytest.fixture(autouse=True)
def _in_english() -> None:
    """What a request of the test before spoke is not spoken here."""
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture(autouse=True)
def _no_exports_of_others() -> Iterator[None]:
    """Pages show what lies in VAR for a collection of their name."""
    yield
    shutil.rmtree(settings.VAR / "exports", ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Each process copies the database of the session's migrations."""
    session = settings.VAR.parent if os.environ.get("PYTEST_XDIST_WORKER") else settings.VAR
    if whole := migrated.database(session):
        connection.settings_dict["TEST"] |= {"TEMPLATE": whole, "MIGRATE": False}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """After a transactional test the tables are as the migrations left them."""
    with django_db_blocker.unblock():
        emptier = Emptier()
    TransactionTestCase._fixture_teardown = lambda self: emptier.empty()


@pytest.fixture(scope="session")
def instance_environment(django_db_setup: None) -> dict[str, str]:
    """The environment in which another process works on this session's database, Redis and VAR."""
    database = connection.settings_dict
    host, port = database["HOST"], database["PORT"] or "5432"
    place = f"/{database['NAME']}?host={quote(host, safe='')}"
    if not host.startswith("/"):
        user, password = quote(database["USER"]), quote(database["PASSWORD"])
        place = f"{user}{':' + password if password else ''}@{host}:{port}/{database['NAME']}"
    else:
        place = f"{quote(database['USER'])}@{place}"
    return {**os.environ, "DATABASE_URL": f"postgres://{place}", "DJANGO_SETTINGS_MODULE": "config.settings"}


@pytest.fixture
def instance(instance_environment: dict[str, str], transactional_db: None) -> Iterator[dict[str, str]]:
    """`instance_environment` for one transactional test; what it left in Redis is removed.

    Who lives stays written there: the standing worker says so every two seconds only, and each test would wait for it.
    """
    yield instance_environment
    import redis

    with redis.Redis.from_url(settings.REDIS_URL) as client:
        keys = [key for key in client.scan_iter(f"*{settings.PREFIX}:*", count=1000) if b":workers:" not in key]
        if keys:
            client.delete(*keys)


@pytest.fixture
def redis_is_unavailable(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody listens where Redis should be."""
    from jobs import notifications
    from tests.plugin_browser import free_port

    address = f"redis://127.0.0.1:{free_port()}/0"
    settings.REDIS_URL = settings.CELERY_BROKER_URL = address
    monkeypatch.setattr(notifications, "_unavailable_until", 0.0)
    known = (notifications.redis_client, notifications.message_sender)
    for one in known:
        one.cache_clear()
    yield
    for one in known:
        one.cache_clear()


Manage = Callable[..., Finished]


@pytest.fixture
def manage(instance: dict[str, str]) -> Manage:
    """Run `manage.py <args>` as its own process on the test's database: `manage("status", "books", "--json").json`.

    `check`: fail the test unless it exits 0. `environment`: more variables. `timeout`: seconds.
    """

    def run(
        *args: object,
        stdin: str | None = None,
        check: bool = True,
        environment: dict[str, str] | None = None,
        timeout: float = PATIENCE,
    ) -> Finished:
        done = subprocess.run(
            [sys.executable, "manage.py", *map(str, args)],
            cwd=env.ROOT,
            env={**instance, **(environment or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"manage.py {' '.join(map(str, args))} ended with {done.returncode}:\n{done.stderr}")
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def make_instance() -> Iterator[Callable[..., Instance]]:
    """Instances on fresh, short paths; nothing of them survives the test."""
    made: list[Instance] = []
    folders: list[Path] = []

    def make(place: str = "var", **variables: str) -> Instance:
        folders.append(Path(tempfile.mkdtemp(prefix="quorum-keeper-", dir="/tmp")))
        made.append(Instance(folders[-1] / place, **variables))
        return made[-1]

    yield make
    for instance in made:
        instance.end()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
