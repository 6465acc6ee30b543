"""One version, said by the command line, the footer, the API document, requests to others and backups."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from config.version import VERSION
from corpus.commands import QuorumCommand
from corpus.url_fetch.pages import HEADERS

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_line_and_every_command_say_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    for argument in ("version", "--version"):
        run = subprocess.run([sys.executable, ROOT / "manage.py", argument], capture_output=True, text=True, check=True)
        assert (run.stdout, run.stderr) == (f"Quorum {VERSION}\n", "")
    with pytest.raises(SystemExit):
        QuorumCommand().create_parser("manage.py", "judge").parse_args(["--version"])
    assert capsys.readouterr().out == f"Quorum {VERSION}\n"


@pytest.mark.django_db
def test_page_api_document_and_requests_say_it_too() -> None:
    client = Client()
    assert f">Quorum {VERSION}</footer>" in client.get("/accounts/login/", follow=True).text
    assert client.get("/api/v1/openapi.json").json()["info"]["version"] == VERSION
    assert HEADERS["User-Agent"].startswith(f"Quorum/{VERSION} ")
    assert settings.VERSION == VERSION
    assert f'VERSION = "{VERSION}"' in (ROOT / "client" / "quorum_client" / "version.py").read_text()


def test_the_license_stands_beside_notices_of_what_is_brought() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    notice = (ROOT / "NOTICE").read_text()
    for line in (ROOT / "static" / "vendor" / "VERSIONS").read_text().splitlines():
        file, name, version = line.split()[:3]
        assert f"{name.removesuffix('.org')} {version} (static/vendor/{file})" in notice
