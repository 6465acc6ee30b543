"""API keys and other secrets: from the environment or a secret file, and nowhere else."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from annotation.models import Role
from config import env
from config.env import ROOT
from corpus.collections import secrets
from corpus.errors import BadInput
from jobs import workers
from jobs.processes import spawn_child, stop_children
from judges.models import Campaign
from judges.providers import open_provider
from judges.workers import worker_pool
from tests.engine_parts import FAST, collection_of, make_panel
from tests.factories import client_of, make_member
from tests.instances import until
from tests.modelserver.fixtures import KEY, KEY_ENV
from tests.stages import first_quick

NAME = "QUORUM_TEST_SECRET"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (NAME, f"{NAME}_FILE", "QUORUM_SECRETS"):
        monkeypatch.delenv(name, raising=False)


def test_a_secret_stands_in_the_environment_or_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert secrets.read_secret(NAME) == ""
    monkeypatch.setenv("QUORUM_SECRETS", str(tmp_path))
    for value in ("from the folder", "changed, which holds from the next call on"):
        (tmp_path / NAME).write_text(f"{value}\n")
        assert secrets.read_secret(NAME) == value
    (tmp_path / "named").write_text("from the file\r\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "named"))
    assert secrets.read_secret(NAME) == "from the file"
    monkeypatch.setenv(NAME, "from the environment")
    assert secrets.read_secret(NAME) == "from the environment"


def test_a_secret_file_that_cannot_be_read_says_so_without_its_content(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "missing"))
    with pytest.raises(BadInput, match=f"{NAME}_FILE: .*cannot be read"):
        secrets.read_secret(NAME)
    (tmp_path / "binary").write_bytes(b"sk-secret\xff\xfe")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "binary"))
    with pytest.raises(BadInput) as refused:
        secrets.read_secret(NAME)
    assert "sk-secret" not in str(refused.value)
    with pytest.raises(SystemExit):
        env.secret(NAME)


@pytest.mark.parametrize("provider", first_quick(["openai-compatible", "openai", "anthropic", "google"]))
def test_a_judge_takes_its_key_from_the_folder_of_secrets(provider, model_server, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv(KEY_ENV, raising=False)
    monkeypatch.setenv("QUORUM_SECRETS", str(tmp_path))
    (tmp_path / KEY_ENV).write_text(KEY)

    async def headers() -> list[str]:
        return list(open_provider(model_server.judge("yes", provider=provider)).credentials().values())

    assert [value.removeprefix("Bearer ") for value in asyncio.run(headers())] == [KEY]


PLACES = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public' AND data_type IN ('text', 'character varying', 'jsonb', 'json', 'bytea', 'ARRAY')
"""


def places_of(word: str) -> list[str]:
    """Every column of every table that holds the word, compressed bodies as bytes."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(PLACES)
        for table, column in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE strpos("{column}"::text, %s) > 0', [word])
            if cursor.fetchone()[0]:
                found.append(f"{table}.{column}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["yes", "refused-key"])
def test_a_key_is_in_no_table_no_log_and_no_page(behaviour, model_server, manage, instance, tmp_path) -> None:
    """A campaign with its key from a secret file, once answered and once refused by the server."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / KEY_ENV).write_text(KEY)
    (tmp_path / "worker.log").touch()
    if behaviour == "refused-key":
        model_server.script({"*": {"fault": "echo-key"}})  # a server that repeats the key in its error
    environment = {**instance, **FAST, "QUORUM_SECRETS": str(tmp_path / "secrets"), "QUORUM_LOG_LEVEL": "DEBUG"}
    environment.pop(KEY_ENV)
    books = collection_of(3)
    make_panel(model_server)
    make_member(books, "charlie", Role.ADMIN)
    with (tmp_path / "worker.log").open("w") as log:
        child = spawn_child(worker_pool.worker_command(1, "keys"), environment, cwd=ROOT, stderr=log, stdout=log)
        try:
            until(lambda: bool(workers.live_workers()))
            ended = manage("judge", "books", "--wait", "--json", check=False, environment=environment)
        finally:
            stop_children([child])
    assert ended.code in (0, 3), ended.err
    assert any(request for request in model_server.requests())
    assert Campaign.objects.exists()
    assert places_of(KEY) == []
    assert places_of(KEY_ENV) != [], "the name of the variable is kept: the search does find words"
    logs = (tmp_path / "worker.log").read_text() + ended.out + ended.err
    assert KEY not in logs and (tmp_path / "secrets").name in str(environment)
    for path in Path(environment["QUORUM_VAR"]).rglob("*.log"):
        assert KEY not in path.read_text(errors="replace"), path.name
    client = client_of(books.memberships.get())
    pair = books.pair_set.first()
    for page in ("", "campaigns/", "settings/", "panel/", "audit-log/", f"pairs/{pair.pk}/"):
        assert KEY not in client.get(f"/c/books/{page}").content.decode()


def test_a_key_written_into_the_judges_file_is_refused_and_not_repeated(tmp_path: Path, capsys, db) -> None:
    key = "sk-abc-0123456789"
    file = tmp_path / "judges.toml"
    file.write_text(f'[[judge]]\nname = "a"\nprovider = "openai"\nmodel = "m"\napi_key_env = "{key}"\n')
    with pytest.raises(SystemExit):
        call_command("configure_judges", str(file))
    said = capsys.readouterr()
    assert "api_key_env" in said.err and "the key itself" in said.err and key not in said.err + said.out
    assert places_of(key) == []


def test_the_secret_key_comes_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "SECRET_KEY").write_text("x" * 60)
    variables = {"QUORUM_SECRETS": str(tmp_path), "SECRET_KEY": "", "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", "from django.conf import settings; print(settings.SECRET_KEY == 'x' * 60)"]
    done = subprocess.run(command, env={**os.environ, **variables}, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
