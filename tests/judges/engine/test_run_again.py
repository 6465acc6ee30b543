"""What the writer runs twice, where the connection was lost with the answer to a commit, is done once."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from judges.batch import store
from judges.batch.batch_loop import BatchWorkerLoop
from judges.engine import budget
from judges.engine.answers import SentCall
from judges.engine.limits import process_name
from judges.models import Campaign, Reservation
from judges.models.batches import BatchCall
from judges.records import Judge
from store.sql import database_parameters
from tests.engine_parts import held
from tests.factories import make_collection


class Writer:
    """A worker's writer that hears of no commit the first time. `stored`: whether the first one took place."""

    def __init__(self, *, stored: bool) -> None:
        connection.ensure_connection()
        self.connection, self.stored = connection.connection, stored

    async def ask(self, question: Any) -> Any:
        with self.connection.transaction():
            question(self.connection)
            if not self.stored:
                raise psycopg.Rollback
        with self.connection.transaction():
            return question(self.connection)


def budget_of(writer: Writer, *, bounded: bool) -> budget.Budget:
    # Just what is reserved at once: booked twice it would not fit.
    limit = 0.5 * budget.AHEAD if bounded else None
    campaign = Campaign.objects.create(collection=make_collection("birds"), policy="single", panel="main", budget=limit)
    found = budget.Budget(cast(Any, writer), campaign.pk, process_name(), 60.0)
    found.bounded = bounded
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("stored", [True, False])
def test_money_is_reserved_and_given_back_once(bounded: bool, stored: bool) -> None:
    mine = budget_of(Writer(stored=stored), bounded=bounded)
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


@pytest.mark.django_db
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
