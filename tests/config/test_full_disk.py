"""A site whose disk is full says so, in one sentence and everywhere, and goes on once there is room."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judges.engine.test_faults_disk import namespace


@pytest.mark.weekly
def test_a_full_disk_is_said_and_nothing_is_left_half(tmp_path: Path) -> None:
    command = [*namespace(), sys.executable, "-m", "tests.full_disk_site", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["before"]["status"], seen["full"]["status"]) == (200, 503)
    assert any("disk is full" in reason for reason in json.loads(seen["full"]["text"])["reasons"])
    print([one["status"] for one in seen["writes"]], seen["backup"])
    # A little fits into what the tables have allocated.
    assert {one["status"] for one in seen["writes"]} <= {201, 503, 507}
    refused = [one for one in seen["writes"] if one["status"] != 201]
    assert refused and {one["type"] for one in refused} == {"application/problem+json"}
    assert all(len(json.loads(one["text"])["detail"]) > 20 for one in refused)
    assert seen["backup"]["code"] in (1, 2) and seen["backup"]["left"] == []
    assert "Traceback" not in seen["backup"]["error"]
    told = [line for line in seen["backup"]["error"].splitlines() if not line.endswith(" ...")]
    assert len(told) == 1, seen["backup"]["error"]
    assert seen["after"]["code"] == 0, seen["after"]["error"]
