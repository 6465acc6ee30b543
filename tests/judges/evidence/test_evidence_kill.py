"""Workers are killed while a judge writes and measures texts: nothing is lost and nothing is paid twice."""

import json
import os
import signal
import subprocess
import time

import pytest

from config.env import ROOT
from corpus.models import Target
from jobs.processes import spawn_child
from judges.campaigns import evidence_campaigns as campaigns
from judges.campaigns import lifecycle
from judges.models import Attempt
from judges.workers import worker_pool
from tests.engine_parts import FAST, make_judge, sums_up
from tests.instances import until
from tests.judges.evidence.test_evidence_campaigns import LIST, measured, positives
from tests.repeated import repeated_beyond_flight

PAIRS = 16


def text(number: int) -> str:
    """What is written about a pair: another text for each, so that no call of the log equals another one."""
    evidence = f"Mapping {number} maps hashable values."
    return json.dumps({"contribution": "It says what is mapped.", "evidence": evidence})


@pytest.mark.slow
def test_a_killed_worker_loses_no_text_and_pays_for_none_twice(manage, model_server, instance):
    collection = positives(PAIRS)[0].collection
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    slow = {"latency": 0.3}
    listed = {"contains": LIST, "text": '{"entities": ["hashable"]}', **slow}
    writers = [{"contains": f"mapping number {n} ", "text": text(n), **slow} for n in range(PAIRS)]
    model_server.script({"writer": writers, "measurer": [listed, {**measured(), **slow}]})
    environment = {**instance, **FAST, "QUORUM_CALLS_IN_FLIGHT": "4"}
    own = spawn_child(worker_pool.worker_command(2, "killed"), environment, cwd=ROOT, stderr=subprocess.DEVNULL)
    wanted = campaigns.writer_configuration("writer", "measurer")
    campaign = lifecycle.start_campaign(collection=collection, configuration=wanted).campaign
    assert campaign is not None
    until(lambda: len(model_server.requests()) >= PAIRS)
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(1.0)  # what it sent may still be on its way
    dead = time.time()
    assert 0 < Attempt.objects.count() < 3 * PAIRS
    options = ("--writer", "writer", "--measure", "measurer", "--wait", "--json", "--workers", 1)
    done = manage("write_evidence", "books", *options, environment=FAST)
    assert (done.json["campaign"], done.json["written"]) == (campaign.number, PAIRS) and sums_up(done.json)
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    assert Attempt.objects.filter(counts=True).count() == 3 * PAIRS
    assert Target.objects.filter(good=True).count() == PAIRS
