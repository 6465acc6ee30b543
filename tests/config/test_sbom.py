"""`make sbom`: what a release consists of, from the compiled lists alone."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import ROOT
from tests.stages import first_slow

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
    done = subprocess.run(
        [program, *command[1:]], cwd=ROOT, env=nowhere, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["bomFormat"] == "CycloneDX"
    components = {(one["name"].lower(), one["version"]) for one in document["components"]}
    wanted = PINNED.findall((ROOT / f"requirements{extra}.txt").read_text())
    assert wanted and components == {(name.lower(), version) for name, version in wanted}
    assert all(one["externalReferences"][0]["hashes"] for one in document["components"])
