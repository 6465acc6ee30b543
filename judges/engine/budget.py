"""Budgets of campaigns and collections, from which workers reserve money ahead of their calls (docs/adr/0025).

A worker reserves the upper bound of several calls in one conditional statement, and returns what it
does not need. The writer turns reservations into spending with each stored attempt. Both are in rows
of the worker's own, and summed up under a lock of the collection for a reservation: so limits hold
for all campaigns and workers together, and storing an attempt waits for no lock. When a reservation
is refused, idle money is returned at once, and the worker waits for the calls in flight; only when
none is in flight is the budget spent.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from judges.costs import counters
from judges.engine.limits import process_name
from judges.engine.plan import Plan
from judges.engine.writer import ResultWriter
from store.sql import read_sql

# Calls that are reserved together: reservations of a collection exclude each other, and each is a transaction.
AHEAD = 16
AHEAD_UNBOUNDED = 64  # The same without a limit, where a reservation takes money from nobody.

RECLAIM = read_sql(__file__, "reclaim")

# Campaigns with an expired reservation of another machine's worker.
ABANDONED = """
SELECT DISTINCT campaign_id FROM judges_reservation
WHERE until < now() AND strpos(holder, '@') > 0 AND split_part(holder, '@', 1) <> split_part(%(holder)s, '@', 1)
"""

# Before RESERVE, as a separate statement: its sums must be read under the lock. Until then they can
# only fall, because a stored answer costs no more than was reserved for it.
LOCK = "SELECT pg_advisory_xact_lock(7110, collection_id::int) FROM judges_campaign WHERE id = %(campaign)s"

# For a campaign without limits: only to count the calls that a lost machine may have made. `after`:
# as in reserve.sql.
HOLD = """
INSERT INTO judges_reservation AS v (campaign_id, holder, usd, calls, until)
SELECT id, %(holder)s, %(usd)s, %(calls)s, now() + make_interval(secs => %(lease)s)
FROM judges_campaign WHERE id = %(campaign)s
ON CONFLICT (campaign_id, holder) DO UPDATE
SET usd = v.usd + EXCLUDED.usd, calls = v.calls + EXCLUDED.calls, until = EXCLUDED.until
WHERE v.calls IS DISTINCT FROM %(after)s
RETURNING v.calls
"""
RESERVE = read_sql(__file__, "reserve")
KEYS = {"costs": list(counters.COSTS), "counted": list(counters.CALLS)}  # Values of RESERVE.

# With no call in flight the reserved money is set to 0: sums of floats would leave a remainder.
GIVE_BACK = """
UPDATE judges_reservation SET calls = GREATEST(0, calls - %(calls)s),
    usd = CASE WHEN calls <= %(calls)s THEN 0 ELSE GREATEST(0, usd - %(usd)s) END
WHERE campaign_id = %(campaign)s AND holder = %(holder)s AND calls IS DISTINCT FROM %(after)s
RETURNING calls
"""
# A row without calls would be renewed, and summed up for each reservation, as long as its process lives.
FORGET = "DELETE FROM judges_reservation WHERE campaign_id = %(campaign)s AND holder = %(holder)s AND calls = 0"

# Whether calls are in flight that may return money. The reservations of batches, which last a day, are not waited for.
OUT = """
SELECT EXISTS (
    SELECT FROM judges_reservation v JOIN judges_campaign o ON o.id = v.campaign_id
    JOIN judges_campaign c ON c.id = %(campaign)s
    WHERE v.calls > 0 AND v.until < now() + interval '1 hour' AND c.state NOT IN ('paused', 'cancelled', 'budget')
      AND CASE WHEN %(shared)s THEN o.collection_id = c.collection_id ELSE o.id = c.id END)
"""

# For all campaigns of which the process has reservations, in one statement.
RENEW = "UPDATE judges_reservation SET until = now() + make_interval(secs => %(lease)s) WHERE holder = %(holder)s"

# `starts`: the start whose limit was reached. A campaign that has been started since, with a higher limit, goes on.
STOP = """
UPDATE judges_campaign SET state = 'budget', stopped_by = %(cap)s, paused_because = ''
WHERE id = %(campaign)s AND state = 'running' AND starts = %(starts)s
"""

# The campaign's state, and whether the campaign and its collection have limits, as admins last set them.
LIMITS = """
SELECT c.state, c.budget IS NOT NULL OR c.max_calls IS NOT NULL, k.budget IS NOT NULL OR k.daily_budget IS NOT NULL
FROM judges_campaign c JOIN corpus_collection k ON k.id = c.collection_id WHERE c.id = %(campaign)s
"""

PRICE = "price"
SHARED = ("collection", "day")  # Limits that the collection's campaigns share.


class BudgetExhausted(Exception):
    """A limit of money or calls does not allow another call."""


class Budget:
    """Money and calls that this process has reserved of a campaign's budget. Without a limit all are granted."""

    def __init__(self, writer: ResultWriter, campaign: int, holder: str, lease: float) -> None:
        self.writer = writer
        self.holder = holder
        self.values: dict[str, Any] = {"campaign": campaign, "holder": holder, "lease": lease}
        # The holder of a batch is no process (judges.batch), and RECLAIM needs a process's name to know its machine.
        self.process = holder if "@" in holder else process_name()
        self.bounded = False
        self.exhausted = False
        self.unpriced = False
        self.cap = ""  # The limit that refused the last reservation (judges.models.Campaign.Cap).
        self.lock = asyncio.Lock()
        self.usd = 0.0
        self.calls = 0
        self.has_row = False

    def apply_plan(self, plan: Plan) -> None:
        """Take over the limits of the campaign's current plan."""
        self.bounded, self.exhausted, self.cap = plan.bounded, False, ""
        self.values["starts"] = plan.row.starts
        self.unpriced = None in plan.prices.values()

    async def look(self) -> str:
        """Return the campaign's state ("gone" if it is deleted), and note whether it has limits now.

        The state is "capped" if a limit was set while calls waited without a reservation: their pairs are released,
        and the next time slice reserves.
        """
        row = await self.writer.ask(lambda connection: connection.execute(LIMITS, self.values).fetchone())
        state, has_limit, has_shared_limit = row or ("gone", False, False)
        was_bounded, self.bounded = self.bounded, has_limit or has_shared_limit
        if has_shared_limit and self.unpriced:  # the cost of its calls would be unknown
            self.cap, self.exhausted = PRICE, True
            await self.stop()
        return "capped" if self.bounded and not was_bounded and state == "running" else str(state)

    async def stop(self) -> None:
        values = self.values | {"cap": self.cap}
        await self.writer.ask(lambda connection: connection.execute(STOP, values).rowcount)

    async def reserve(self, usd: float) -> float:
        """Reserve at least `usd` dollars for one call, and return the reserved amount. Raises BudgetExhausted.

        1. Take it from what this process has reserved ahead.
        2. Otherwise reserve for many calls, or for this one alone.
        3. Otherwise return what is reserved ahead, here and in other processes, and wait for calls in flight.
        4. With none in flight, try once more before the budget is exhausted.
        """
        async with self.lock:
            if self.bounded and self.cap == PRICE:
                raise BudgetExhausted
            # A loop, as another call may take the money while this one waits for the lock. A
            # tolerance, as the sums are floats.
            while self.calls < 1 or self.usd < usd - 1e-15:
                if self.exhausted:
                    raise BudgetExhausted
                ahead = AHEAD if self.bounded else AHEAD_UNBOUNDED
                if await self._fetch(usd * ahead, ahead) or await self._fetch(usd, 1):
                    continue
                await self.close()
                if not await self.writer.ask(self._out):
                    if await self._fetch(usd, 1):
                        continue
                    self.exhausted = True
                    raise BudgetExhausted
                await asyncio.sleep(0.05)
            self.calls -= 1
            amount = usd if self.calls else self.usd  # the last call gets the remainder, too
            self.usd -= amount
        return amount

    def give_back(self, usd: float) -> None:
        """Return the money of a call that was not sent to what this process has reserved."""
        self.usd += usd
        self.calls += 1

    async def close(self) -> None:
        """Return to the campaign what this process has reserved for no call."""
        if not self.has_row:
            return
        values = self.values | {"usd": self.usd, "calls": self.calls, "after": None}
        self.usd, self.calls = 0.0, 0

        def give_back(connection: Connection[Any]) -> bool:
            _note_calls(values, connection.execute(GIVE_BACK, values).fetchone())
            return connection.execute(FORGET, values).rowcount == 0

        self.has_row = await self.writer.ask(give_back)

    async def _fetch(self, usd: float, calls: int) -> bool:
        values = self.values | KEYS | {"usd": usd, "calls": calls, "after": None}

        def ask(connection: Connection[Any]) -> str:
            if not self.bounded:
                # RECLAIM only once: without a limit it frees no money, and only removes expired rows.
                if not self.has_row:
                    connection.execute(RECLAIM, values | {"holder": self.process})
                _note_calls(values, connection.execute(HOLD, values).fetchone())
                return ""
            # In one transaction with the reservation, so that dead workers' money is free at once.
            connection.execute(LOCK, values)
            connection.execute(RECLAIM, values | {"holder": self.process})
            limit, *row = connection.execute(RESERVE, values).fetchone() or ("budget", None)
            _note_calls(values, row)
            return str(limit)

        self.cap = await self.writer.ask(ask)
        if self.cap:
            return False
        self.has_row = True
        self.usd += usd
        self.calls += calls
        return True

    def _out(self, connection: Connection[Any]) -> bool:
        """Return whether calls are in flight whose reservations count against the limit that refused."""
        row = connection.execute(OUT, self.values | {"shared": self.cap in SHARED}).fetchone()
        return bool(row and row[0])


def _note_calls(values: dict[str, Any], row: Sequence[Any] | None) -> None:
    """Note the number of calls in the reservation, by which a repeated statement recognises its first run."""
    if row is not None and row[0] is not None:
        values["after"] = row[0]


def renew_reservations(connection: Connection[Any], holder: str, lease: float) -> None:
    """Renew all reservations of a live process."""
    connection.execute(RENEW, {"holder": holder, "lease": lease})
