"""llama.cpp is killed in the middle of a campaign and started again: nothing is lost, and little is asked twice."""

import json
import subprocess
import time
from collections import Counter

import pytest

from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from judges.campaigns.selectors import campaign_status
from judges.models import Attempt, Work
from judges.workers import worker_pool
from tests.engine_parts import begin, state_of
from tests.instances import until
from tests.models.judging import PAIRS, check_pairs, check_rows, configure, make_pairs

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_campaign_outlives_its_model_server(llama_server, instance):
    collection = make_pairs()
    configure(llama_server, {"judge": {"prompt": "verdict-only"}})
    campaign = begin(collection, policy="single")
    own = spawn_child(worker_pool.worker_command(1, "models"), instance, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(llama_server.usages()) >= 4 and "answer" not in llama_server.calls()[-1])
        llama_server.kill()
        before = len(llama_server.calls())
        time.sleep(3)
        assert state_of(campaign) == "running", "it waits for its server"
        llama_server.start()
        until(lambda: state_of(campaign) == "finished")
    finally:
        stop_children([own])
    check_pairs(campaign_status(collection))
    check_rows(llama_server)
    assert not Work.objects.filter(state="failed", reason="error").exists(), "no pair pays for the server's death"
    calls = llama_server.calls()
    lost = [call for call in calls if "answer" not in call]
    assert lost and all(call in calls[:before] for call in lost), "those in flight at the kill"
    asked = Counter(json.dumps(call["request"]) for call in calls)
    assert asked.total() - len(asked) <= len(lost)
    assert len(asked) == PAIRS == Attempt.objects.filter(counts=True).count()
