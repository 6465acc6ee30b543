"""What workers of a lost machine held of a budget counts as spent; of this machine's it comes back.

And what the writer runs twice, where the connection was lost with the answer to a commit, is done once.
"""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from judges.batch import store
from judges.batch.batch_loop import BatchWorkerLoop
from judges.campaigns import lifecycle
from judges.campaigns.selectors import campaign_status
from judges.costs import counters
from judges.costs.accounting import describe_assumed_cost, of_status
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.engine import budget
from judges.engine.answers import SentCall
from judges.engine.limits import process_name
from judges.engine.rows import BOOK_CALLS
from judges.models import Campaign, JudgeVersion, Reservation
from judges.models.batches import BatchCall
from judges.models.costs import CollectionTally
from judges.records import Judge
from judges.tasks import reclaim_budgets
from judges.workers import inline_runner as runner
from judges.workers.child import Child
from store.nodes import node_id
from store.sql import database_parameters
from tests.engine_parts import held, spent_by
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


def reclaim(holder: str, until: str = "2000-01-01T00:00:00Z") -> tuple[Campaign, CollectionBudget]:
    collection = make_collection("birds")
    campaign = Campaign.objects.create(collection=collection, policy="single", panel="main", budget=10.0)
    CollectionTally.objects.create(collection=collection, shard=0, spent=1.0, day="2020-01-01", day_spent=1)
    Reservation.objects.create(campaign=campaign, holder=holder, usd=3.0, calls=5, until=until)
    values: dict[str, Any] = {"campaign": campaign.pk, "holder": process_name()}
    with connection.cursor() as cursor:
        cursor.execute(budget.RECLAIM, values)
    return campaign, collection_budget(collection)


def test_calls_of_a_lost_machine_are_counted_as_possibly_paid() -> None:
    campaign, account = reclaim("0123456789ab@elsewhere:7:00ff")
    assert (spent_by(campaign), held()) == (3.0, (0.0, 0))
    assert (account.spent, account.reserved) == (4.0, 0.0)
    assert account.today == 3.0, "today's cap counts it"
    sums = counters.read(campaign.pk)
    assert (sums["calls_possible"], sums["cost_possible"], sums["calls"]) == (5, 3.0, 0)
    status = campaign_status(campaign.collection, campaign)
    assert (status["calls_possible"], status["cost_possible"]) == (5, 3.0)
    assert re.findall(r"5 calls .* \$3\.00", str(of_status(status)))
    assert "$3.00 for 5 calls" in describe_assumed_cost(status)
    assert not Reservation.objects.exists()


def test_a_transaction_of_yesterday_leaves_the_sum_of_today_as_it_is() -> None:
    campaign = Campaign.objects.create(collection=make_collection("birds"), policy="single", panel="main")
    judge = JudgeVersion.objects.earliest("pk").pk
    call = {"id": 1, "campaign": campaign.pk, "judge": judge, "role": "rewrite"}
    call |= {"outcome": "labelled", "cached": False, "usd": 0.0, "calls": 0, "holder": "me", "bound": 0.0}
    call |= dict.fromkeys(("tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning"), 0)
    with connection.cursor() as cursor:
        for day, usd in (("2026-03-02", 1.0), ("2026-03-02", 2.0), ("2026-03-01", 4.0), ("2026-03-03", 8.0)):
            then = BOOK_CALLS.replace("(now() AT TIME ZONE 'UTC')::date", f"'{day}'::date")
            cursor.execute(then, {"rows": json.dumps([call | {"cost": usd}]), "stored": [1], "shard": 3})
            tally = CollectionTally.objects.get()
            if day == "2026-03-01":
                assert (tally.spent, str(tally.day), tally.day_spent) == (7.0, "2026-03-02", 3.0)
    assert (tally.spent, str(tally.day), tally.day_spent) == (15.0, "2026-03-03", 8.0)


@pytest.mark.parametrize("holder", ["dead", "{node}@here:7:00ff"])
def test_what_a_worker_of_this_machine_held_comes_back(holder: str) -> None:
    """Its pending answers were taken over before."""
    campaign, account = reclaim(holder.format(node=node_id()[:12]))
    assert (spent_by(campaign), held()[0], account.spent, account.reserved) == (0.0, 0.0, 1.0, 0.0)
    assert "calls_possible" not in campaign_status(campaign.collection, campaign)
    assert account.today == 0.0 and CollectionTally.objects.get().day.year == 2020


def test_who_lives_keeps_what_it_holds() -> None:
    campaign, account = reclaim("0123456789ab@elsewhere:7:00ff", until="2100-01-01T00:00:00Z")
    assert (spent_by(campaign), held()[0], account.reserved) == (0.0, 3.0, 3.0)


def test_workers_count_them_though_nobody_needs_the_money() -> None:
    campaign, _account = reclaim("0123456789ab@elsewhere:7:00ff", until="2100-01-01T00:00:00Z")
    Reservation.objects.create(campaign=campaign, holder="dead", usd=1.0, calls=1, until="2000-01-01T00:00:00Z")
    reclaim_budgets()
    assert Reservation.objects.count() == 2, "a worker of this machine is taken over before"
    Reservation.objects.filter(usd=3.0).update(until="2000-01-01T00:00:00Z")
    reclaim_budgets()
    assert spent_by(campaign) == 3.0 and not Reservation.objects.exists()


class Writer:
    """A worker's writer on the test's connection. `stored`: it hears of no commit the first time, which took place."""

    def __init__(self, *, stored: bool | None = None) -> None:
        connection.ensure_connection()
        self.connection, self.stored = connection.connection, stored

    async def ask(self, question: Any) -> Any:
        if self.stored is None:
            return question(self.connection)
        with self.connection.transaction():
            question(self.connection)
            if not self.stored:
                raise psycopg.Rollback
        with self.connection.transaction():
            return question(self.connection)


def budget_of(
    campaign: Campaign | None = None, *, bounded: bool = False, holder: str = "", **more: Any
) -> budget.Budget:
    if campaign is None:
        # Just what is reserved at once: booked twice it would not fit.
        usd = 0.5 * budget.AHEAD if bounded else None
        values = {"policy": "single", "panel": "main", "budget": usd}
        campaign = Campaign.objects.create(collection=make_collection("birds"), **values)
    mine = budget.Budget(cast(Any, Writer(**more)), campaign.pk, holder or process_name(), 60.0)
    mine.bounded = bounded
    return mine


def test_a_worker_that_finds_the_money_gone_late_stops_no_start_that_has_more() -> None:
    """Another worker stopped the campaign before, and an admin has started it again meanwhile."""
    mine = budget_of(bounded=True)
    campaign = Campaign.objects.get()
    mine.apply_plan(cast(Any, SimpleNamespace(bounded=True, prices={}, row=campaign)))
    Campaign.objects.update(state=Campaign.State.BUDGET)
    resumed = lifecycle.resume(campaign=campaign)
    async_to_sync(mine.stop)()
    assert Campaign.objects.get().state == Campaign.State.RUNNING
    mine.apply_plan(cast(Any, SimpleNamespace(bounded=True, prices={}, row=resumed)))
    async_to_sync(mine.stop)()
    assert Campaign.objects.get().state == Campaign.State.BUDGET


@pytest.mark.parametrize("bounded", [True, False])
def test_a_process_leaves_no_row_behind_once_none_of_its_calls_is_out(bounded: bool) -> None:
    mine = budget_of(bounded=bounded)
    async_to_sync(mine.reserve)(0.5)
    async_to_sync(mine.close)()
    row = Reservation.objects.get()
    assert (row.usd, row.calls) == (0.5, 1), "its call is out"
    Reservation.objects.update(usd=0, calls=0)  # as the writer does once it has stored the call
    async_to_sync(mine.close)()
    assert not Reservation.objects.exists()


def test_a_campaign_without_limits_removes_what_a_dead_worker_of_this_machine_left() -> None:
    campaign, _account = reclaim("0123456789ab@elsewhere:7:00ff", until="2100-01-01T00:00:00Z")
    Reservation.objects.all().delete()
    Reservation.objects.create(campaign=campaign, holder="dead", usd=1.0, calls=1, until="2000-01-01T00:00:00Z")
    async_to_sync(budget_of(campaign).reserve)(0.01)
    assert not Reservation.objects.filter(holder="dead").exists()


@pytest.mark.parametrize("bounded", [True, False])
def test_a_batch_takes_back_what_a_dead_worker_of_this_machine_held(bounded: bool) -> None:
    """Its own reservation is held by no process, so its name tells no machine."""
    campaign, _account = reclaim(f"{node_id()[:12]}@here:7:00ff", until="2100-01-01T00:00:00Z")
    Reservation.objects.update(until="2000-01-01T00:00:00Z")
    mine = budget_of(campaign, bounded=bounded, holder=f"batch:{campaign.pk}")
    async_to_sync(mine.reserve)(0.01)
    assert spent_by(campaign) == 0.0 and [row.holder for row in Reservation.objects.all()] == [mine.holder]


def test_a_time_slice_that_ends_without_pairs_gives_back_what_was_reserved_ahead() -> None:
    """The next slice has a budget of its own, and a living process' reservations never run out."""
    campaign = Campaign.objects.create(collection=make_collection("birds"), policy="single", panel="main", budget=10.0)
    mine = budget_of(campaign, bounded=True)

    class Loop:
        budget, claimed_pairs = mine, list[Any]()

        def apply_plan(self, plan: Any) -> None: ...

        async def run_time_slice(self) -> bool:
            mine.give_back(await mine.reserve(0.25))  # the call was not sent: its account is in trouble
            return True

    class Ready:
        async def ready(self) -> None: ...

    child = SimpleNamespace(tools=SimpleNamespace(writer=Ready()), worker_loops={campaign.pk: Loop()}, draining=set())
    plan = SimpleNamespace(campaign=campaign.pk, judges=())
    assert async_to_sync(Child._run_campaign)(cast(Any, child), cast(Any, plan))
    assert not child.worker_loops and held() == (0.0, 0)


def test_calls_of_a_command_notice_a_limit_that_comes_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LEASE_S", 0.04)
    campaign = Campaign.objects.create(collection=make_collection("birds"), policy="retrieval", panel="main")
    mine = budget_of(campaign)

    async def work() -> None:
        keeping = asyncio.create_task(runner._keep_budget(mine))
        while not mine.bounded:
            await asyncio.sleep(0.01)
        keeping.cancel()
        with pytest.raises(budget.BudgetExhausted):
            await mine.reserve(0.5)

    Campaign.objects.filter(pk=campaign.pk).update(budget=0.25)
    async_to_sync(work)()


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("stored", [True, False])
def test_money_is_reserved_and_given_back_once(bounded: bool, stored: bool) -> None:
    mine = budget_of(bounded=bounded, stored=stored)
    ahead = budget.AHEAD if bounded else budget.AHEAD_UNBOUNDED
    for _ in range(2):  # the second one is held here already
        async_to_sync(mine.reserve)(0.5)
    assert held() == (0.5 * ahead, ahead) and (mine.usd, mine.calls) == (0.5 * (ahead - 2), ahead - 2)
    async_to_sync(mine.close)()
    assert held() == (1.0, 2), "two calls are out"
    Reservation.objects.update(usd=0.5, calls=1)  # as the writer does once it has stored a call
    async_to_sync(mine.reserve)(0.5)
    assert held()[1] == (2 if bounded else 1 + ahead), "as many as there is room for"
    async_to_sync(mine.close)()
    assert held() == (1.0, 2)


@pytest.mark.parametrize("stored", [True, False])
def test_calls_wait_for_a_batch_once(stored: bool) -> None:
    campaign = Campaign.objects.create(collection=make_collection("birds"), policy="single", panel="main")
    loop = loop_of(Writer(stored=stored), campaign.pk)
    judge = Judge(name="a", provider="openai", model="m", id=1)
    loop.caller = SimpleNamespace(collected=[(sent_call(judge), {}) for _ in range(3)])

    async def waits(claimed: Any) -> bool:
        return True

    loop._judge_pair = waits
    assert async_to_sync(loop._judge_chunk)([None])
    assert BatchCall.objects.filter(campaign=campaign).count() == 3


def test_who_lost_the_lock_of_a_batch_campaign_with_the_connection_leaves_it(transactional_db: None) -> None:
    """Else two processes would send the same calls, and both be paid for."""
    done = []
    with (
        psycopg.connect(**database_parameters(), autocommit=True) as first,
        psycopg.connect(**database_parameters(), autocommit=True) as other,
        psycopg.connect(**database_parameters(), autocommit=True) as again,
    ):
        writer = SimpleNamespace(connection=first)

        async def ask(question: Any) -> Any:
            return question(writer.connection)

        writer.ask = ask
        loop = loop_of(writer, 7)

        async def work(until: float) -> bool:
            await loop._ask(lambda raw: done.append("held"))
            writer.connection = again
            first.close()
            while other.execute(store.TAKE, [7]).fetchone() != (True,):
                await asyncio.sleep(0.01)
            await loop._ask(lambda raw: done.append("beside another"))
            return True

        loop._work = work
        assert not asyncio.run(loop.run_time_slice()) and done == ["held"]
        other.execute(store.LEAVE, [7])
        writer.connection = other

        async def alone(until: float) -> bool:
            await loop._ask(lambda raw: done.append("alone"))
            return True

        loop._work = alone
        assert asyncio.run(loop.run_time_slice()) and done == ["held", "alone"]
        assert again.execute(store.TAKE, [7]).fetchone() == (True,), "given back"


def sent_call(judge: Judge) -> SentCall:
    return SentCall({"role": "for"}, judge, "", None, strict=False, may_repair=False, messages="[]")


def loop_of(writer: Any, campaign: int) -> Any:
    """A loop of a batch campaign that has only what the test needs."""
    loop: Any = object.__new__(BatchWorkerLoop)
    loop.tools, loop.plan = SimpleNamespace(writer=writer), SimpleNamespace(campaign=campaign)
    loop.session, loop.is_taken, loop.endpoints, loop.refusal, loop.stopping = None, False, {}, "", False
    return loop
