"""What worker processes store at once stands in rows of their own: none waits for another (docs/adr/0025)."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from corpus.collections.configure import configure_collection
from judges.costs import counters
from judges.costs.collection_budgets import collection_budget
from judges.domain.routing import EscalationReason, RoutingOutcome, RoutingState
from judges.engine import budget, leases, pairs
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import NO_ANSWER, AttemptRow, OutcomeRow, store_rows
from judges.models import Campaign, Reservation
from judges.records import slot_columns
from store.sql import database_parameters
from tests.engine_parts import FAST, collection_of, held, plan_of, spent_by
from tests.instances import until
from tests.standing import end_standing_worker
from tools.bench import lock_waits


@pytest.fixture
def plan(unattended: None) -> Plan:
    """A campaign of four pairs that has a budget, in a collection that has two; nobody works on it."""
    lock_waits.make_panel()
    collection = collection_of(4)
    configure_collection(collection, {"budget": 10.0, "daily_budget": 10.0})
    found = plan_of(collection, policy="debate", budget=10.0)
    assert found.bounded
    return found


@pytest.fixture
def connect() -> Iterator[Any]:
    """Connections of workers, which give up a tenth of a second after they began to wait for a lock."""
    with ExitStack() as stack:

        def one() -> "psycopg.Connection[Any]":
            raw = stack.enter_context(psycopg.connect(**database_parameters(), autocommit=True))
            raw.execute("SET lock_timeout = '100ms'")
            return raw

        yield one


def reserve(raw: "psycopg.Connection[Any]", plan: Plan, holder: str) -> str:
    """Hold half a dollar for a call; the cap that refuses it."""
    values = {"campaign": plan.campaign, "holder": holder, "lease": 60.0, "usd": 0.5, "calls": 1, "after": None}
    with raw.transaction():
        raw.execute(budget.LOCK, values)
        raw.execute(budget.RECLAIM, values)
        row = raw.execute(budget.RESERVE, values | budget.KEYS).fetchone()
    assert row is not None
    return str(row[0])


def ended(plan: Plan, claimed: Claimed, holder: str, number: int) -> list[AttemptRow | OutcomeRow]:
    """A call that cost a quarter of what was held for it, and the outcome of its pair."""
    row = NO_ANSWER | {"id": number, "work": claimed.work, "fence": claimed.fence, "campaign": plan.campaign}
    row |= {"pair": claimed.pair, "judge": plan.debaters[0].id, "prompt": next(iter(plan.prompt_ids.values()))}
    row |= {**slot_columns(("for", 1, 0)), "number": 1, "outcome": "labelled", "verdict": 1, "counts": True}
    row |= {"cost": 0.125, "usd": 0.5, "calls": 1, "bound": 0.5, "holder": holder, "key": f"k{number}"}
    row |= {"started": "2026-01-01T00:00Z"}
    outcome = RoutingOutcome(RoutingState.LABELLED, 1, EscalationReason.NONE, 1, 0.0)
    return [AttemptRow(row), pairs.build_decision(plan, claimed, outcome)]


def test_workers_that_store_and_reserve_at_once_do_not_wait_for_each_other(plan: Plan, connect: Any) -> None:
    """The first one's commit takes its time; meanwhile others reserve, store and commit."""
    slow, other, third = connect(), connect(), connect()
    claimed = leases.claim(slow, plan, lease=60)
    assert [reserve(one, plan, name) for one, name in ((slow, "a"), (other, "b"))] == ["", ""]
    assert held() == (1.0, 2)
    with slow.transaction():
        store_rows(slow, ended(plan, claimed[0], "a", 1), shard=3)
        with other.transaction():
            store_rows(other, ended(plan, claimed[1], "b", 2), shard=4)
        assert reserve(third, plan, "c") == ""
        campaign = Campaign.objects.get(pk=plan.campaign)
        assert (spent_by(campaign), held()) == (0.125, (1.0, 2)), "what the first one stores is held still"
    assert (spent_by(campaign), held()) == (0.25, (0.5, 1))
    found = collection_budget(campaign.collection)
    assert (found.spent, found.today, found.reserved) == (0.25, 0.25, 0.5)


def test_who_reserves_waits_for_who_reserves(plan: Plan, connect: Any) -> None:
    """Or both would hold the last money."""
    first, second = connect(), connect()
    with first.transaction():
        first.execute(budget.LOCK, {"campaign": plan.campaign})
        with pytest.raises(psycopg.errors.LockNotAvailable):
            reserve(second, plan, "b")
    assert reserve(second, plan, "b") == ""


def test_what_was_stored_with_the_last_money_is_seen_by_who_waited_for_the_lock(plan: Plan, connect: Any) -> None:
    """Sums are read once the lock is held, not when the transaction began."""
    first, second = connect(), connect()
    Reservation.objects.create(campaign_id=plan.campaign, holder="a", usd=9.0, calls=9, until="2100-01-01T00:00:00Z")
    values = {"campaign": plan.campaign, "holder": "b", "lease": 60.0, "usd": 0.75, "calls": 1, "after": None}
    with second.transaction():
        second.execute("SELECT 1 FROM judges_reservation")  # its transaction has begun
        assert reserve(first, plan, "c") == ""
        second.execute(budget.LOCK, values)
        cap, _held = second.execute(budget.RESERVE, values | budget.KEYS).fetchone() or ("none", 0)
    assert cap == "budget"


def test_processes_write_to_shards_of_their_own_until_all_are_taken(connect: Any, transactional_db: None) -> None:
    connections = [connect() for _ in range(counters.SHARDS)]
    assert sorted(map(counters.claim_shard, connections)) == list(range(counters.SHARDS))
    assert counters.claim_shard(connect()) in range(counters.SHARDS), "shared with another"
    connections[0].close()
    until(lambda: next_shard() is not None, "a dead process's shard is free")


def next_shard() -> int | None:
    """A shard that nobody holds, as a process that comes now would find it."""
    with psycopg.connect(**database_parameters()) as raw:
        row = raw.execute(counters.CLAIM_SHARD, [list(range(counters.SHARDS))]).fetchone()
    return row and int(row[0])


@pytest.mark.slow
def test_a_campaigns_row_is_updated_as_often_as_its_state_changes(instance: dict[str, str]) -> None:
    """Four processes, 240 calls: the figure `lock_waits` in small."""
    end_standing_worker()  # it would ask the simulated judges, at whose address is nobody
    lock_waits.make_panel()
    found = lock_waits.drain(4, 30, {**os.environ, **instance, **FAST})
    print(f"{found.calls} calls, {found.rate:.0f}/s, waited {found.waited}, updated {found.updated}")
    assert found.updated["judges_campaign"] <= 10
    assert found.updated["judges_reservation"] > 0 and found.updated["judges_tally"] > 0
    campaign = Campaign.objects.get()
    assert held() == (0.0, 0) and spent_by(campaign) == pytest.approx(found.calls * 980e-6)
    assert collection_budget(campaign.collection).spent == pytest.approx(spent_by(campaign))
