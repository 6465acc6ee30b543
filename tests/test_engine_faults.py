"""What the engine does when workers are killed, leases are lost, accounts push back and PostgreSQL is away."""

import os
import signal
import subprocess
import time

import psycopg
import pytest
from django.db import connection

from config.env import ROOT
from corpus.models import Label
from corpus.processes import spawn
from judges import campaigns, fleet, tallies
from judges.engine import claims, pairs
from judges.engine import plan as plans
from judges.engine.plan import Plan
from judges.engine.rows import Attempted, Decided, store
from judges.models import Attempt, Campaign, Work
from judges.routing import Outcome, Reason, State
from judges.tasks import database
from tests.conftest import Manage
from tests.engine_parts import FAST, collection_of, make_panel, most_at_once, sums_up
from tests.modelserver.fixtures import LocalModels, _model_server_process, model_server

__all__ = ["_model_server_process", "model_server"]


@pytest.fixture
def plan(instance: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A running campaign of two pairs with the offline panel, whose work nobody has claimed."""
    monkeypatch.setattr("judges.wakeups.send", lambda campaign: None)
    collection = collection_of(2)
    started = campaigns.start_or_join(collection=collection, wanted=campaigns.configuration(panel="offline"))
    assert started.campaign is not None and started.added == 2
    found = plans.load(started.campaign.pk)
    assert found is not None
    return found


def claim(plan: Plan, lease: float) -> list[claims.Claimed]:
    with psycopg.connect(**database()) as own:
        return claims.claim(own, campaign=plan.campaign, collection=plan.collection, instruction="", lease=lease)


def outcome_of(plan: Plan, claimed: claims.Claimed) -> Decided:
    return pairs.decided(plan, claimed, Outcome(State.LABELLED, 1, Reason.NONE, 1, 0.0))


def write(*ended: Attempted | Decided) -> None:
    with psycopg.connect(**database()) as own:
        store(own, ended, 0)


def test_a_late_write_of_an_old_lease_is_refused(plan: Plan) -> None:
    old = claim(plan, lease=0)
    new = claim(plan, lease=60)
    assert [one.work for one in old] == [one.work for one in new]
    assert [one.fence for one in new] == [2, 2]
    write(outcome_of(plan, old[0]))
    assert not Label.objects.exists() and Work.objects.filter(state="running").count() == 2
    write(outcome_of(plan, new[0]))
    assert Label.objects.get().pair_id == new[0].pair
    write(outcome_of(plan, new[0]))
    assert tallies.read(plan.campaign)["labelled:1"] == 1, "written twice, counted once"


def test_a_held_lease_is_not_claimed_and_the_fourth_claim_gives_up(plan: Plan) -> None:
    assert len(claim(plan, lease=60)) == 2
    assert claim(plan, lease=60) == []
    Work.objects.update(lease_until="2000-01-01T00:00Z")
    assert len(claim(plan, lease=0)) == 2
    assert len(claim(plan, lease=0)) == 2
    assert claim(plan, lease=60) == []
    assert Work.objects.filter(state="failed", reason="error").count() == 2
    assert tallies.read(plan.campaign)["failed"] == 2


def test_released_pairs_are_pending_as_before(plan: Plan) -> None:
    held = claim(plan, lease=60)
    with psycopg.connect(**database()) as own:
        assert claims.renew(own, held, 60) == {one.work for one in held}
        claims.release(own, held)
    assert list(Work.objects.values_list("state", "claims")) == [("pending", 0)] * 2


def test_two_starts_are_one_campaign_and_paused_ones_are_left(plan: Plan) -> None:
    campaign = Campaign.objects.get()
    wanted = campaigns.configuration(panel="offline")
    again = campaigns.start_or_join(collection=campaign.collection, wanted=wanted)
    assert (again.campaign, again.added, again.joined) == (campaign, 0, True)
    campaigns.pause(campaign=campaign)
    with pytest.raises(campaigns.BadInput, match="paused"):
        campaigns.start_or_join(collection=campaign.collection, wanted=wanted)
    assert claim(plan, lease=60) == [], "nothing of a paused campaign is claimed"
    campaigns.resume(campaign=campaign)
    campaigns.cancel(campaign=campaign)
    with pytest.raises(campaigns.BadInput, match="cancelled"):
        campaigns.resume(campaign=campaign)
    fresh = campaigns.start_or_join(collection=campaign.collection, wanted=wanted)
    assert fresh.campaign != campaign and fresh.added == 2
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM judges_campaign")
        assert cursor.fetchone() == (2,)


def test_a_killed_worker_costs_only_the_calls_in_flight(
    manage: Manage, model_server: LocalModels, instance: dict[str, str]
) -> None:
    collection = collection_of(24)
    make_panel(model_server, debate=("yes+a", "yes+b"), votes=tuple(f"yes+v{place}" for place in range(5)))
    model_server.script({"*": {"verdict": "yes", "latency": 0.3}})
    environment = {**instance, **FAST, "QUORUM_CALLS_IN_FLIGHT": "8"}
    worker = spawn(fleet.worker_command(2, "killed"), environment, cwd=ROOT, stderr=subprocess.DEVNULL)
    manage("judge", "books", environment=FAST)
    end = time.monotonic() + 60
    while len(model_server.requests()) < 40 and time.monotonic() < end:
        time.sleep(0.05)
    killed = time.time()
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    before = Attempt.objects.count()
    assert 0 < before < 24 * 7
    done = manage("judge", "books", "--wait", "--json", "--workers", 1, environment=FAST, timeout=90)
    assert done.json["labelled"] == 24 and sums_up(done.json)
    assert done.json["campaign"] == Campaign.objects.get(collection=collection).pk
    requests = model_server.requests()
    flying = {r["sha256"] for r in requests if r["arrived"] <= killed and r["answered"] > killed - 0.05}
    twice = [r["sha256"] for r in requests]
    assert {one for one in twice if twice.count(one) > 1} <= flying
    assert Attempt.objects.filter(counts=True).count() == 24 * 7


def test_limits_hold_across_two_workers_and_a_429_slows_only_its_account(
    manage: Manage, model_server: LocalModels
) -> None:
    collection_of(10)
    panel = make_panel(model_server, debate=("d1", "d2"), votes=("v1",), max_concurrency=3)
    panel.majority = 1
    panel.save()
    # The voter has an account of its own: Anthropic's wire format, another base URL.
    from judges.models import JudgeVersion

    JudgeVersion.objects.filter(name="v1").update(
        provider="anthropic", base_url=model_server.anthropic, max_concurrency=None
    )
    model_server.script(
        {
            "v1": [{"fault": "429", "retry_after": "1", "times": 1}, {"verdict": "yes"}],
            "*": {"verdict": "yes", "latency": 0.1},
        }
    )
    done = manage("judge", "books", "--wait", "--json", "--workers", 2, environment=FAST, timeout=90)
    assert done.json["labelled"] == 10 and done.json["calls_failed"] == 1
    requests = model_server.requests()
    debate = [r for r in requests if r["model"] in ("d1", "d2")]
    assert most_at_once(debate) <= 3
    votes = sorted((r for r in requests if r["model"] == "v1"), key=lambda r: r["arrived"])
    refused = next(r for r in votes if r["status"] == 429)
    after = [r for r in votes if r["arrived"] > refused["answered"] + 0.15]
    assert min(r["arrived"] for r in after) >= refused["answered"] + 0.95
    assert any(refused["answered"] < r["arrived"] < refused["answered"] + 0.9 for r in debate)
