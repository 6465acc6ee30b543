"""A campaign's budget and its collection's caps, reserved ahead of calls (docs/adr/0025).

A worker reserves the upper bound of a batch of calls in one conditional statement and hands back
what it does not need. The writer turns reservations into spending with each stored attempt. Both
stand in rows of the worker's own, and are summed up under a lock of the collection when somebody
reserves: so caps hold for all campaigns and workers together, and what is stored waits for nobody
(docs/adr/0025). When a reservation is refused, what is idle goes back at once and the worker waits
for calls that are out; only when none is out is the budget spent.
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

# Reservations of a collection exclude each other; 16 calls at a time, since each costs a transaction.
AHEAD = 16  # Calls that are reserved together.
AHEAD_UNBOUNDED = 64  # Where nothing limits them: nobody is refused what these hold, so fewer calls wait for them.

RECLAIM = read_sql(__file__, "reclaim")

# Campaigns of which a worker of another machine holds what it no longer renews.
ABANDONED = """
SELECT DISTINCT campaign_id FROM judges_reservation
WHERE until < now() AND strpos(holder, '@') > 0 AND split_part(holder, '@', 1) <> split_part(%(holder)s, '@', 1)
"""

# Before RESERVE, in a statement of its own: what is summed up must be seen as it is once the lock
# is held. Until then the sums can only fall, because an answer that is stored costs no more than
# what was held for it.
LOCK = "SELECT pg_advisory_xact_lock(7110, collection_id::int) FROM judges_campaign WHERE id = %(campaign)s"

# Of a campaign that nothing limits: only so that calls which a lost machine may have made are
# counted. `after`: as in reserve.sql.
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

# Where no call is out any more the money held is set to 0: sums of floats would leave a trace behind.
GIVE_BACK = """
UPDATE judges_reservation SET calls = GREATEST(0, calls - %(calls)s),
    usd = CASE WHEN calls <= %(calls)s THEN 0 ELSE GREATEST(0, usd - %(usd)s) END
WHERE campaign_id = %(campaign)s AND holder = %(holder)s AND calls IS DISTINCT FROM %(after)s
RETURNING calls
"""
# A row without calls would be renewed, and summed up by all who reserve, for as long as its process lives.
FORGET = "DELETE FROM judges_reservation WHERE campaign_id = %(campaign)s AND holder = %(holder)s AND calls = 0"

# Whether calls will come home that may make room. What a batch holds for a day is not waited for.
OUT = """
SELECT EXISTS (
    SELECT FROM judges_reservation v JOIN judges_campaign o ON o.id = v.campaign_id
    JOIN judges_campaign c ON c.id = %(campaign)s
    WHERE v.calls > 0 AND v.until < now() + interval '1 hour' AND c.state NOT IN ('paused', 'cancelled', 'budget')
      AND CASE WHEN %(shared)s THEN o.collection_id = c.collection_id ELSE o.id = c.id END)
"""

# Of all campaigns that the process holds something of, in one statement.
RENEW = "UPDATE judges_reservation SET until = now() + make_interval(secs => %(lease)s) WHERE holder = %(holder)s"

STOP = """
UPDATE judges_campaign SET state = 'budget', stopped_by = %(cap)s, paused_because = ''
WHERE id = %(campaign)s AND state = 'running'
"""

# The campaign's state, and whether it or its collection has a limit, as admins last set them.
LIMITS = """
SELECT c.state, c.budget IS NOT NULL OR c.max_calls IS NOT NULL, k.budget IS NOT NULL OR k.daily_budget IS NOT NULL
FROM judges_campaign c JOIN corpus_collection k ON k.id = c.collection_id WHERE c.id = %(campaign)s
"""

PRICE = "price"
SHARED = ("collection", "day")  # Caps that other campaigns of the collection fill too.


class BudgetExhausted(Exception):
    """A budget, or the number of calls, does not allow another call."""


class Budget:
    """Money and calls that this process has reserved of a campaign's budget; where no limit is set all are granted."""

    def __init__(self, writer: ResultWriter, campaign: int, holder: str, lease: float) -> None:
        self.writer = writer
        self.holder = holder
        self.values = {"campaign": campaign, "holder": holder, "lease": lease}
        # What a batch holds is held by no process (judges.batch), and RECLAIM tells machines by the names of processes.
        self.process = holder if "@" in holder else process_name()
        self.bounded = False
        self.exhausted = False
        self.unpriced = False
        self.cap = ""  # The one that refused the last reservation (judges.models.Campaign.Cap).
        self.lock = asyncio.Lock()
        self.usd = 0.0
        self.calls = 0
        self.has_row = False

    def apply_plan(self, plan: Plan) -> None:
        """Take the limits of the campaign's present row."""
        self.bounded, self.exhausted, self.cap = plan.bounded, False, ""
        self.unpriced = None in plan.prices.values()

    async def look(self) -> str:
        """Return the campaign's state ("gone": it is deleted), and note whether it is bounded, as admins last set it.

        "capped": a limit came while calls waited that did not ask for it. They are put back; the next drain reserves.
        """
        row = await self.writer.ask(lambda connection: connection.execute(LIMITS, self.values).fetchone())
        state, limited, capped = row or ("gone", False, False)
        before, self.bounded = self.bounded, limited or capped
        if capped and self.unpriced:  # nobody could say what its calls cost
            self.cap, self.exhausted = PRICE, True
            await self.stop()
        free = before or not self.bounded or state != "running"
        return str(state) if free else "capped"

    async def stop(self) -> None:
        values = self.values | {"cap": self.cap}
        await self.writer.ask(lambda connection: connection.execute(STOP, values).rowcount)

    async def reserve(self, usd: float) -> float:
        """Hold at least `usd` dollars for one call; return what is held. Raises BudgetExhausted."""
        async with self.lock:
            if self.bounded and self.cap == PRICE:
                raise BudgetExhausted
            # A loop: another call of this process may take what was fetched while this one waited
            # for the lock. A tolerance, since the sum of what was fetched and taken is a float.
            while self.calls < 1 or self.usd < usd - 1e-15:
                if self.exhausted:
                    raise BudgetExhausted
                # Many calls ahead, or else just this one: near the limit the whole batch would be
                # refused though one call fits.
                ahead = AHEAD if self.bounded else AHEAD_UNBOUNDED
                if await self._fetch(usd * ahead, ahead) or await self._fetch(usd, 1):
                    continue
                # Near the limit money held ahead may be what is missing, here or in another
                # process: give it back, then look again.
                await self.close()
                if not await self.writer.ask(self._out):
                    if await self._fetch(usd, 1):
                        continue
                    self.exhausted = True
                    raise BudgetExhausted
                await asyncio.sleep(0.05)
            self.calls -= 1
            held = usd if self.calls else self.usd  # the last call takes the rest along
            self.usd -= held
        return held

    def give_back(self, usd: float) -> None:
        """Keep what a call held that was not sent after all: the next one may have it."""
        self.usd += usd
        self.calls += 1

    async def close(self) -> None:
        """Give back what this process has reserved and no call uses."""
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
                # Not before each call, as below: here it only removes rows that nobody else would.
                if not self.has_row:
                    connection.execute(RECLAIM, values | {"holder": self.process})
                _note_calls(values, connection.execute(HOLD, values).fetchone())
                return ""
            # In one transaction with the reservation: what dead workers held counts as free at once.
            connection.execute(LOCK, values)
            connection.execute(RECLAIM, values | {"holder": self.process})
            cap, *held = connection.execute(RESERVE, values).fetchone() or ("budget", None)
            _note_calls(values, held)
            return str(cap)

        self.cap = await self.writer.ask(ask)
        if self.cap:
            return False
        self.has_row = True
        self.usd += usd
        self.calls += calls
        return True

    def _out(self, connection: Connection[Any]) -> bool:
        """Return whether calls are out, or about to be, that hold what was refused."""
        row = connection.execute(OUT, self.values | {"shared": self.cap in SHARED}).fetchone()
        return bool(row and row[0])


def _note_calls(values: dict[str, Any], row: Sequence[Any] | None) -> None:
    """Keep what the row holds for a second run; without changes, what the first left."""
    if row is not None and row[0] is not None:
        values["after"] = row[0]


def renew_reservations(connection: Connection[Any], holder: str, lease: float) -> None:
    """Prolong the reservations of a process that lives."""
    connection.execute(RENEW, {"holder": holder, "lease": lease})
