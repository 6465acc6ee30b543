"""The training extra of the demo: told while it is installed, and after a failure."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config import extra
from config.extra import Extra
from tests.instances import ROOT, until


def told(var: Path) -> dict[str, Any]:
    return dict(json.loads((var / extra.STATE).read_text()))


def is_over(one: Extra) -> bool:
    one.look()
    return one.process is None


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder whose installer the test writes, with the real requirement files."""
    (tmp_path / "config").mkdir()
    for name in extra.FILES:
        (tmp_path / name).write_text((extra.env.ROOT / name).read_text())
    monkeypatch.setattr(extra.env, "ROOT", tmp_path)
    return tmp_path / "config" / "install.sh"


def test_packages_are_counted_by_what_this_machine_needs() -> None:
    names = extra.wanted_packages()
    assert {"torch", "transformers", "peft"} <= names and "colorama" not in names
    assert names <= extra.installed_packages()


def test_an_installation_that_ends_well_brings_up_the_worker(installer: Path, tmp_path: Path) -> None:
    installer.write_text('echo "$VENV" > venv; [ "$1" = training ] && sleep 0.5')
    ready: list[bool] = []
    one = Extra(tmp_path, lambda: ready.append(True))
    one.start()
    assert told(tmp_path)["state"] == "installing" and not ready
    until(lambda: is_over(one))
    state = told(tmp_path)
    assert ready == [True] and state["state"] == "ready" and state["done"] == state["of"] > 40
    assert (tmp_path / "venv").read_text() == f"{sys.prefix}\n", "they go beside the Python that runs"


def test_one_that_fails_says_why_and_what_to_do(installer: Path, tmp_path: Path) -> None:
    reason = "No space left on device"
    installer.write_text(f"echo '{reason}'; exit 1")
    one = Extra(tmp_path, lambda: pytest.fail("not ready"))
    one.start()
    until(lambda: is_over(one))
    assert told(tmp_path)["state"] == "failed"
    assert told(tmp_path)["line"].startswith(f"{reason}: make install-training")


def test_it_ends_with_the_demo_and_who_leaves_it_out_is_told_how_to_get_it(installer: Path, tmp_path: Path) -> None:
    installer.write_text("sleep 60")
    one = Extra(tmp_path, lambda: None)
    one.start()
    process = one.process
    one.stop()
    assert isinstance(process, subprocess.Popen) and process.poll() is not None
    Extra(tmp_path, lambda: None).leave_out()
    assert told(tmp_path)["state"] == "left-out" and "make install-training" in told(tmp_path)["line"]


def test_another_folder_takes_the_packages_of_another_python(tmp_path: Path) -> None:
    """`make VENV=folder`; one that holds anything but a virtual environment stays as it is."""
    command = ["make", "--no-print-directory", "-n", f"VENV={tmp_path}/venv", "test"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert lines[-1].split() == [f"{tmp_path}/venv/bin/python", "-m", "pytest", "-n", "3"]
    installed = [[f'VENV="{tmp_path}/venv"', "sh", "config/install.sh", kind] for kind in ("dev", "base", "training")]
    assert [line.split() for line in lines[:-1]] == installed

    (tmp_path / "letters").write_text("mine")
    variables, command = {**os.environ, "VENV": str(tmp_path)}, ["sh", "config/install.sh", "base"]
    refused = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert str(tmp_path) in refused.stderr and "holds files" in refused.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["letters"]
