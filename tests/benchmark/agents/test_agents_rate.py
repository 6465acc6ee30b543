"""Agents at full size on the scripted server: how busy they keep an account beside plain calls, and what they take."""

import json
import statistics
import subprocess
import sys

import pytest

from config.env import ROOT
from tests.instances import PATIENCE
from tests.modelserver.fixtures import KEY, KEY_ENV

pytestmark = pytest.mark.weekly
LEAST, LEAST_BY_PROCESSOR, MOST_MB = 0.8, 0.5, 500


def test_agents_make_at_least_four_fifths_of_the_calls_of_plain_questions(instance, tmp_path, model_server, capsys):
    """200 queries x 4 systems x 2 agents x 3 rounds, 40 calls at once of 0.5 s each.

    Calls wait for the server most of the time, so that the rate says how full agents keep an
    account, whatever else the machine does. What a call costs besides is compared by the
    processor's time, coarsely: it was 1.2 to 1.5 times a plain call's. The process is one of its
    own: what other tests loaded is no memory of agents.
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
    assert statistics.mean(turn["ratio"] for turn in turns) >= LEAST
    assert all(turn["agents_per_cpu_s"] >= LEAST_BY_PROCESSOR * turn["plain_per_cpu_s"] for turn in turns)
    assert memory["peak_mb"] < MOST_MB
