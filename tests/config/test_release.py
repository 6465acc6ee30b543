"""What a release says and consists of: one version everywhere, the list of its packages, and whole documents."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from config.env import ROOT
from config.version import VERSION
from corpus.commands import QuorumCommand
from corpus.url_fetch.pages import HEADERS
from tests.config.test_names import modules
from tests.stages import first_slow
from tools import reference


@pytest.mark.django_db
def test_the_command_line_pages_the_api_document_and_requests_say_the_version(capsys) -> None:
    for argument in ("version", "--version"):
        run = subprocess.run([sys.executable, ROOT / "manage.py", argument], capture_output=True, text=True, check=True)
        assert (run.stdout, run.stderr) == (f"Quorum {VERSION}\n", "")
    with pytest.raises(SystemExit):
        QuorumCommand().create_parser("manage.py", "judge").parse_args(["--version"])
    assert capsys.readouterr().out == f"Quorum {VERSION}\n"
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


PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
(RECIPE,) = re.findall(
    r"^\t\t\$\(VENV\)/bin/(cyclonedx-py .*) \|\| exit 1", (ROOT / "Makefile").read_text(), re.MULTILINE
)
(EXTRAS,) = re.findall(r'^\t@for extra in "" (.*); do', (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_extra_has_one() -> None:
    found = {path.stem.removeprefix("requirements") for path in ROOT.glob("requirements*.in")}
    assert {"", *EXTRAS.split()} == found - {"-dev", "-models"}


@pytest.mark.parametrize("extra", first_slow(["", "-tracing", "-cloud", "-training"]))
def test_it_names_every_package_with_its_version_and_hashes_without_a_network(extra: str, tmp_path: Path) -> None:
    out = tmp_path / "sbom.json"
    command = RECIPE.replace("$$extra", extra).replace(f"sbom{extra}.json", str(out)).replace('"', "").split()
    program = Path(sys.executable).parent / command[0]
    nowhere = {**os.environ, "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    command = [str(program), *command[1:]]
    done = subprocess.run(command, cwd=ROOT, env=nowhere, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["bomFormat"] == "CycloneDX"
    components = {(one["name"].lower(), one["version"]) for one in document["components"]}
    wanted = PINNED.findall((ROOT / f"requirements{extra}.txt").read_text())
    assert wanted and components == {(name.lower(), version) for name, version in wanted}
    assert all(one["externalReferences"][0]["hashes"] for one in document["components"])


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "docker").rglob("*.md"))

ABSENT = re.compile(r"\b(?:MECHANICS|SPEC|CONTRACT|UI\.md)\b|\b(?:DESIGN|BUILD) [A-Z]?\d|\(FORMATS\)\.|\([PB] \d\.\d")
"""Plans that were never part of the repository, and letters for the titles of papers."""
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|html|js|css|sh))`")
HISTORY = re.compile(r"supersede|^\*Since ", re.IGNORECASE | re.MULTILINE)
"""A decision that was replaced may name files that went with it."""


def test_nobody_is_sent_to_a_document_that_is_not_here_and_there_are_few_of_them() -> None:
    sources = {*modules(), *(ROOT / "tests").rglob("*.py"), *PAGES} - {Path(__file__)}
    assert [str(path) for path in sources if ABSENT.search(path.read_text())] == []
    docs = ROOT / "docs"
    assert len(list(docs.glob("*.md"))) <= 16 and len(list((docs / "adr").glob("0*.md"))) <= 35


def test_every_file_that_a_page_names_is_there() -> None:
    files = [str(path) for path in ROOT.rglob("*") if path.suffix in {".py", ".html", ".js", ".css", ".sh"}]
    told = [(page, page.read_text()) for page in PAGES]
    named = [(page.name, name) for page, text in told if not HISTORY.search(text) for name in FILE.findall(text)]
    assert [one for one in named if not any(path.endswith(f"/{one[1]}") for path in files)] == []
    assert reference.PAGE.read_text() == reference.page()
