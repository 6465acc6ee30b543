"""Agents at full size on the scripted server: how fast beside plain calls, and how much memory."""

import json
import statistics
import subprocess
import sys

import pytest

from config.env import ROOT
from tests.instances import PATIENCE
from tests.modelserver.fixtures import KEY, KEY_ENV

pytestmark = pytest.mark.weekly
LEAST, MOST_MB = 0.8, 500


def test_agents_make_at_least_four_fifths_of_the_calls_of_plain_questions(instance, tmp_path, model_server, capsys):
    """200 queries x 4 systems x 2 agents x 3 rounds at 0.2 s: the rate of calls made, and the memory of the process.

    The machine is others' too: agents and plain questions take turns, and the median of three turns counts. The process
    is one of its own: what other tests loaded is no memory of agents.
    """
    command = [sys.executable, "-m", "tests.benchmark.agents.measured_rate", str(model_server.port), model_server.log]
    environment = {**instance, "QUORUM_VAR": str(tmp_path), KEY_ENV: KEY}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert run.returncode == 0, run.stderr
    *turns, memory = [json.loads(line) for line in run.stdout.splitlines()]
    with capsys.disabled():
        print("\n" + json.dumps([*turns, memory]))
    assert statistics.median(turn["ratio"] for turn in turns) >= LEAST
    assert memory["peak_mb"] < MOST_MB
