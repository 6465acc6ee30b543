"""Workers are killed, and PostgreSQL is, in the middle of a campaign: nothing is lost and nothing is paid twice."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from judges.campaigns.selectors import campaign_status
from judges.models import Attempt
from tests.engine_parts import FAST, begin, collection_of, make_panel, scene, state_of, sums_up
from tests.instances import until
from tests.judges.killing import kill, own_worker
from tests.modelserver.fixtures import LocalModels
from tests.repeated import repeated_beyond_flight


@pytest.mark.weekly
def test_answers_of_a_killed_worker_are_stored_and_nothing_is_paid_twice(manage, model_server, instance):
    """Its processes die in the middle of their calls: only those that were out are sent again."""
    collection = collection_of(24)
    make_panel(model_server, debate=("yes+a", "yes+b"), votes=tuple(f"yes+v{place}" for place in range(5)))
    model_server.script({"*": {"verdict": "yes", "latency": 0.3}})
    own = own_worker(instance, calls=8)
    campaign = begin(collection)
    until(lambda: len(model_server.requests()) >= 40)
    killed, dead = kill(own)
    before = Attempt.objects.count()
    assert 0 < before < 24 * 7
    done = manage("judge", "books", "--wait", "--json", "--workers", 1, environment=FAST)
    assert done.json["labelled"] == 24 and sums_up(done.json)
    assert done.json["campaign"] == campaign.number
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    assert Attempt.objects.filter(counts=True).count() == 24 * 7
    assert not list((settings.VAR / "spool").glob("*.new"))


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="others use it; test_faults_processes kills its own")
def test_postgresql_is_killed_under_a_live_worker(models: LocalModels) -> None:
    """The keeper starts it again; answers wait meanwhile, and are stored without asking again."""
    announced = Path(os.environ["QUORUM_VAR"]) / "services.json"
    if not announced.exists():
        pytest.skip("this session's PostgreSQL is not an embedded one")
    collection = scene(models, 20)
    models.script({"*": {"verdict": "yes", "latency": 0.4}})
    campaign = begin(collection)
    until(lambda: len(models.requests()) >= 10)
    connection.close()
    os.kill(json.loads(announced.read_text())["pids"]["postgres"], signal.SIGQUIT)
    time.sleep(0.5)
    until(reachable)
    until(lambda: state_of(campaign) == "finished")
    found = campaign_status(collection)
    assert found["labelled"] == 20 and sums_up(found)
    assert found["calls"] == len(models.requests()) == 20 * 7


def reachable() -> bool:
    try:
        connection.ensure_connection()
    except Exception:
        connection.close()
        return False
    return True
