"""A campaign's budget and its collection's caps, reserved ahead of calls (MECHANICS M3, docs/adr/0025).

A worker reserves the upper bound of a batch of calls in one conditional statement and hands back what it does not
need. The writer turns reservations into spending with each stored attempt. The same statements book the row of the
collection, so that its caps hold for all campaigns and workers together. When a reservation is refused, what is idle
goes back at once and the worker waits for calls that are out; only when none is out is the budget spent.
"""

import asyncio
from typing import Any

from psycopg import Connection

from judges.campaigns.counters import ADD
from judges.engine.plan import Plan
from judges.engine.writer import ResultWriter

# One statement for 16 calls: the campaign's row would be locked for each call otherwise.
AHEAD = 16  # Calls that are reserved together.
# A collection's account row is made on first use; ON CONFLICT, because several workers begin together.
OPEN = """
INSERT INTO judges_account (collection_id, day)
SELECT collection_id, (now() AT TIME ZONE 'UTC')::date FROM judges_campaign WHERE id = %(campaign)s
ON CONFLICT DO NOTHING
"""

# Of dead workers of all the collection's campaigns: what they held may be what is refused here. The answers that a
# worker of this machine had were taken over before; those of another machine may be lost with it (its name stands
# before the holder's @), so what such a worker held counts as spent: its calls were possibly sent, and paid.
RECLAIM = """
WITH dead AS (
    DELETE FROM judges_reservation v USING judges_campaign c
    WHERE c.id = v.campaign_id AND v.until < now()
      AND c.collection_id = (SELECT collection_id FROM judges_campaign WHERE id = %(campaign)s)
    RETURNING v.campaign_id, c.collection_id, v.usd, v.calls,
        (strpos(v.holder, '@') > 0 AND split_part(v.holder, '@', 1) <> split_part(%(holder)s, '@', 1))::int AS lost
),
campaigns AS (
    UPDATE judges_campaign c SET reserved = GREATEST(0, c.reserved - s.usd),
        calls_reserved = GREATEST(0, c.calls_reserved - s.calls),
        spent = c.spent + s.usd_lost, calls_spent = c.calls_spent + s.calls_lost
    FROM (SELECT campaign_id, sum(usd) AS usd, sum(calls) AS calls, sum(usd * lost) AS usd_lost,
              sum(calls * lost) AS calls_lost FROM dead GROUP BY 1) s
    WHERE c.id = s.campaign_id RETURNING c.id
),
counted AS ({counted})
UPDATE judges_account a SET reserved = GREATEST(0, a.reserved - s.usd),
    calls_reserved = GREATEST(0, a.calls_reserved - s.calls), spent = a.spent + s.usd_lost,
    day = CASE WHEN s.usd_lost > 0 THEN (now() AT TIME ZONE 'UTC')::date ELSE a.day END,
    day_spent = CASE WHEN s.usd_lost > 0 AND a.day <> (now() AT TIME ZONE 'UTC')::date THEN s.usd_lost
                     ELSE a.day_spent + s.usd_lost END
FROM (SELECT collection_id, sum(usd) AS usd, sum(calls) AS calls, sum(usd * lost) AS usd_lost,
          (SELECT count(*) FROM campaigns) AS changed FROM dead GROUP BY 1) s
WHERE a.collection_id = s.collection_id
""".format(
    counted=ADD.format(
        rows="""
    SELECT campaign_id, 0, key, sum(value) FROM dead CROSS JOIN LATERAL
        (VALUES ('calls_possible', calls::float8), ('cost_possible', usd)) AS k(key, value)
    WHERE lost = 1 AND value > 0 GROUP BY 1, 3 ORDER BY 1, 3"""
    )
)

# Campaigns of which a worker of another machine holds what it no longer renews.
ABANDONED = """
SELECT DISTINCT campaign_id FROM judges_reservation
WHERE until < now() AND strpos(holder, '@') > 0 AND split_part(holder, '@', 1) <> split_part(%(holder)s, '@', 1)
"""

# The cap that refuses it, '' where it is held now. Both rows are locked before they are compared, campaign first.
RESERVE = """
WITH c AS MATERIALIZED (
    SELECT id, collection_id, budget, max_calls, spent + reserved + %(usd)s AS usd,
           calls_spent + calls_reserved + %(calls)s AS calls
    FROM judges_campaign WHERE id = %(campaign)s FOR NO KEY UPDATE
),
a AS MATERIALIZED (
    SELECT spent + reserved + %(usd)s AS usd, reserved + %(usd)s
           + CASE WHEN day = (now() AT TIME ZONE 'UTC')::date THEN day_spent ELSE 0 END AS today
    FROM judges_account WHERE collection_id = (SELECT collection_id FROM c) FOR NO KEY UPDATE
),
asked AS MATERIALIZED (
    SELECT c.id, c.collection_id, CASE
        WHEN c.calls > c.max_calls THEN 'max-calls'
        WHEN %(usd)s <= 0 THEN ''
        WHEN c.usd > c.budget + 1e-12 THEN 'budget'
        WHEN a.usd > k.budget + 1e-12 THEN 'collection'
        WHEN a.today > k.daily_budget + 1e-12 THEN 'day'
        ELSE '' END AS cap
    FROM c CROSS JOIN a JOIN corpus_collection k ON k.id = c.collection_id
),
campaign AS (
    UPDATE judges_campaign c SET reserved = reserved + %(usd)s, calls_reserved = calls_reserved + %(calls)s
    FROM asked WHERE c.id = asked.id AND asked.cap = '' RETURNING c.id
),
account AS (
    UPDATE judges_account a SET reserved = reserved + %(usd)s, calls_reserved = calls_reserved + %(calls)s
    FROM asked WHERE a.collection_id = asked.collection_id AND asked.cap = ''
),
held AS (
    INSERT INTO judges_reservation AS v (campaign_id, holder, usd, calls, until)
    SELECT id, %(holder)s, %(usd)s, %(calls)s, now() + make_interval(secs => %(lease)s) FROM campaign
    ON CONFLICT (campaign_id, holder) DO UPDATE
    SET usd = v.usd + EXCLUDED.usd, calls = v.calls + EXCLUDED.calls, until = EXCLUDED.until
)
SELECT cap FROM asked
"""

# Where no call is out any more the reserved money is set to 0: sums of floats would leave a trace behind.
GIVE_BACK = """
WITH mine AS (
    UPDATE judges_reservation SET usd = usd - %(usd)s, calls = calls - %(calls)s
    WHERE campaign_id = %(campaign)s AND holder = %(holder)s RETURNING campaign_id
),
campaign AS (
    UPDATE judges_campaign c SET calls_reserved = GREATEST(0, c.calls_reserved - %(calls)s),
        reserved = CASE WHEN c.calls_reserved <= %(calls)s THEN 0 ELSE GREATEST(0, c.reserved - %(usd)s) END
    FROM mine WHERE c.id = mine.campaign_id RETURNING c.collection_id
)
UPDATE judges_account a SET calls_reserved = GREATEST(0, a.calls_reserved - %(calls)s),
    reserved = CASE WHEN a.calls_reserved <= %(calls)s THEN 0 ELSE GREATEST(0, a.reserved - %(usd)s) END
FROM campaign WHERE a.collection_id = campaign.collection_id
"""

# Whether calls will come home that may make room. What a batch holds for a day is not waited for.
OUT = """
SELECT EXISTS (
    SELECT FROM judges_reservation v JOIN judges_campaign o ON o.id = v.campaign_id
    JOIN judges_campaign c ON c.id = %(campaign)s
    WHERE v.calls > 0 AND v.until < now() + interval '1 hour' AND c.state NOT IN ('paused', 'cancelled', 'budget')
      AND CASE WHEN %(shared)s THEN o.collection_id = c.collection_id ELSE o.id = c.id END)
"""

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
    """Money and calls that this process has reserved of a campaign's budget; nothing where no limit is set."""

    def __init__(self, writer: ResultWriter, campaign: int, holder: str, lease: float) -> None:
        self.writer = writer
        self.holder = holder
        self.values = {"campaign": campaign, "holder": holder, "lease": lease}
        self.bounded = False
        self.exhausted = False
        self.unpriced = False
        self.cap = ""  # The one that refused the last reservation (judges.models.Campaign.Cap).
        self.lock = asyncio.Lock()
        self.usd = 0.0
        self.calls = 0

    def apply_plan(self, plan: Plan) -> None:
        """Take the limits of the campaign's present row."""
        self.bounded, self.exhausted, self.cap = plan.bounded, False, ""
        self.unpriced = None in plan.prices.values()

    async def look(self) -> str:
        """The campaign's state now ("gone": it is deleted), and whether it is bounded, as admins last set it.

        "capped": a limit came while calls waited that hold nothing of it. They are put back; the next drain reserves.
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
        """The campaign stops, and says at which cap."""
        values = self.values | {"cap": self.cap}
        await self.writer.ask(lambda connection: connection.execute(STOP, values).rowcount)

    async def reserve(self, usd: float) -> float | None:
        """Hold at least `usd` dollars for one call; what is held, None without a budget. Raises BudgetExhausted."""
        if not self.bounded:
            return None
        async with self.lock:
            if self.cap == PRICE:
                raise BudgetExhausted
            # A loop: another call of this process may take what was fetched while this one waited for the lock.
            while (held := self._reserve_locally(usd)) is None:
                if self.exhausted:
                    raise BudgetExhausted
                # Many calls ahead, or else just this one: near the limit the whole batch would be refused though one
                # call fits.
                if await self._fetch(usd * AHEAD, AHEAD) or await self._fetch(usd, 1):
                    continue
                # Near the limit money held ahead may be what is missing, here or in another process: give it back, then
                # look again.
                await self.close()
                if not await self.writer.ask(self._out):
                    if await self._fetch(usd, 1):
                        continue
                    self.exhausted = True
                    raise BudgetExhausted
                await asyncio.sleep(0.05)
        return held

    def give_back(self, usd: float) -> None:
        """The call was not sent after all: the next one may have it."""
        self.usd += usd
        self.calls += 1

    async def close(self) -> None:
        """Give back what this process has reserved and no call uses."""
        usd, calls, self.usd, self.calls = self.usd, self.calls, 0.0, 0
        if calls:
            values = self.values | {"usd": usd, "calls": calls}
            await self.writer.ask(lambda connection: connection.execute(GIVE_BACK, values).rowcount)

    def _reserve_locally(self, usd: float) -> float | None:
        # A tolerance, since the sum of what was fetched and taken is a float.
        if self.calls < 1 or self.usd < usd - 1e-15:
            return None
        self.calls -= 1
        held = usd if self.calls else self.usd  # the last call takes the rest along
        self.usd -= held
        return held

    async def _fetch(self, usd: float, calls: int) -> bool:
        values = self.values | {"usd": usd, "calls": calls}

        def ask(connection: Connection[Any]) -> str:
            # In one transaction with the reservation: what dead workers held counts as free at once.
            connection.execute(OPEN, values)
            connection.execute(RECLAIM, values)
            row = connection.execute(RESERVE, values).fetchone()
            return str(row[0]) if row else "budget"

        self.cap = await self.writer.ask(ask)
        if self.cap:
            return False
        self.usd += usd
        self.calls += calls
        return True

    def _out(self, connection: Connection[Any]) -> bool:
        """Whether calls are out, or about to be, that hold what was refused."""
        row = connection.execute(OUT, self.values | {"shared": self.cap in SHARED}).fetchone()
        return bool(row and row[0])


def renew_reservations(connection: Connection[Any], holder: str, lease: float) -> None:
    """Prolong the reservations of a process that lives."""
    connection.execute(RENEW, {"holder": holder, "lease": lease})
