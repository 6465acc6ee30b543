"""The disk is full for 15 s in the middle of a campaign: PostgreSQL, Redis and the spool cannot write."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import ROOT
from judges.engine.pending_answers import PendingAnswerLog
from tests.fault_rig import Outcome, note


def namespace() -> list[str]:
    """How to get a mount namespace of one's own here. Skips the test where that is forbidden."""
    ways = (["unshare", "-m"], ["unshare", "-r", "-m"])
    for way in ways[os.geteuid() != 0 :]:
        tried = [*way, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
        if shutil.which("unshare") and subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return way
    pytest.skip("not run: this machine allows no mount namespace")


@pytest.mark.weekly
def test_a_full_disk_loses_doubles_and_pays_nothing(tmp_path: Path) -> None:
    command = [*namespace(), sys.executable, "-m", "tests.full_disk", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    refused, holds = found.pop("refused"), found.pop("holds")
    note("disk full", Outcome(**found))
    assert refused > 10, "PostgreSQL could not write"
    assert holds, found


def test_half_a_line_on_a_full_disk_spoils_no_other_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes half of the second answer; the first and the third can be read after a kill."""
    spool, write = PendingAnswerLog(tmp_path), os.write
    spool.keep(b'{"answer": 1}')
    monkeypatch.setattr(
        "judges.engine.pending_answers.os.write", lambda file, line: write(file, line[: len(line) // 2])
    )
    with pytest.raises(OSError, match="No space left"):
        spool.keep(b'{"answer": 2}')
    monkeypatch.undo()
    segment = spool.keep(b'{"answer": 3}')
    assert segment.path.read_bytes().splitlines() == [b'{"answer": 1}', b'{"answer": 3}']
    assert segment.waiting == 2
