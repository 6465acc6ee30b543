"""A campaign's budget, reserved ahead of calls (MECHANICS M3).

A worker reserves the upper bound of a batch of calls in one conditional UPDATE and hands back what it does not need.
The writer turns reservations into spending with each stored attempt. When a reservation is refused, what is idle goes
back at once and the worker waits for calls that are out; only when none is out is the budget spent.
"""

import asyncio
from typing import Any

from psycopg import Connection

from judges.engine.writer import Writer

AHEAD = 16
"""Calls that are reserved together."""

RECLAIM = """
WITH dead AS (DELETE FROM judges_reservation WHERE campaign_id = %(campaign)s AND until < now() RETURNING usd, calls)
UPDATE judges_campaign
SET reserved = GREATEST(0, reserved - s.usd), calls_reserved = GREATEST(0, calls_reserved - s.calls)
FROM (SELECT COALESCE(sum(usd), 0) AS usd, COALESCE(sum(calls), 0) AS calls FROM dead) s
WHERE id = %(campaign)s AND (s.usd <> 0 OR s.calls <> 0)
"""

RESERVE = """
WITH fits AS (
    UPDATE judges_campaign SET reserved = reserved + %(usd)s, calls_reserved = calls_reserved + %(calls)s
    WHERE id = %(campaign)s
      AND (budget IS NULL OR %(usd)s <= 0 OR spent + reserved + %(usd)s <= budget + 1e-12)
      AND (max_calls IS NULL OR calls_spent + calls_reserved + %(calls)s <= max_calls)
    RETURNING id)
INSERT INTO judges_reservation AS v (campaign_id, holder, usd, calls, until)
SELECT id, %(holder)s, %(usd)s, %(calls)s, now() + make_interval(secs => %(lease)s) FROM fits
ON CONFLICT (campaign_id, holder) DO UPDATE
SET usd = v.usd + EXCLUDED.usd, calls = v.calls + EXCLUDED.calls, until = EXCLUDED.until
"""

GIVE_BACK = """
WITH mine AS (
    UPDATE judges_reservation SET usd = usd - %(usd)s, calls = calls - %(calls)s
    WHERE campaign_id = %(campaign)s AND holder = %(holder)s RETURNING campaign_id)
UPDATE judges_campaign c SET calls_reserved = GREATEST(0, c.calls_reserved - %(calls)s),
    reserved = CASE WHEN c.calls_reserved <= %(calls)s THEN 0 ELSE GREATEST(0, c.reserved - %(usd)s) END
FROM mine WHERE c.id = mine.campaign_id
"""

RENEW = "UPDATE judges_reservation SET until = now() + make_interval(secs => %(lease)s) WHERE holder = %(holder)s"

STOP = "UPDATE judges_campaign SET state = 'budget' WHERE id = %s AND state = 'running'"


class Spent(Exception):
    """The budget, or the number of calls, does not allow another call."""


class Budget:
    """What this process holds of one campaign's budget. A campaign without one reserves nothing."""

    def __init__(self, writer: Writer, campaign: int, holder: str, lease: float) -> None:
        self.writer = writer
        self.values = {"campaign": campaign, "holder": holder, "lease": lease}
        self.bounded = False
        self.exhausted = False
        self.lock = asyncio.Lock()
        self.usd = 0.0
        self.calls = 0

    async def reserve(self, usd: float) -> float | None:
        """Hold at least `usd` dollars for one call; what is held, None without a budget. Raises Spent."""
        if not self.bounded:
            return None
        async with self.lock:
            while (held := self._take(usd)) is None:
                if self.exhausted:
                    raise Spent
                if await self._fetch(usd * AHEAD, AHEAD) or await self._fetch(usd, 1):
                    continue
                await self.close()
                if not await self.writer.ask(self._out):
                    if await self._fetch(usd, 1):
                        continue
                    self.exhausted = True
                    raise Spent
                await asyncio.sleep(0.05)
        return held

    def give_back(self, usd: float) -> None:
        """The call was not sent after all: the next one may have it."""
        self.usd += usd
        self.calls += 1

    async def close(self) -> None:
        """Hand back what is idle."""
        usd, calls, self.usd, self.calls = self.usd, self.calls, 0.0, 0
        if calls:
            values = self.values | {"usd": usd, "calls": calls}
            await self.writer.ask(lambda connection: connection.execute(GIVE_BACK, values).rowcount)

    def _take(self, usd: float) -> float | None:
        if self.calls < 1 or self.usd < usd - 1e-15:
            return None
        self.calls -= 1
        held = usd if self.calls else self.usd  # the last call takes the rest along
        self.usd -= held
        return held

    async def _fetch(self, usd: float, calls: int) -> bool:
        values = self.values | {"usd": usd, "calls": calls}

        def ask(connection: Connection[Any]) -> bool:
            connection.execute(RECLAIM, values)
            return connection.execute(RESERVE, values).rowcount > 0

        if not await self.writer.ask(ask):
            return False
        self.usd += usd
        self.calls += calls
        return True

    def _out(self, connection: Connection[Any]) -> bool:
        """Whether anybody's calls are out, or about to be."""
        row = connection.execute("SELECT calls_reserved > 0 FROM judges_campaign WHERE id = %(campaign)s", self.values)
        found = row.fetchone()
        return bool(found and found[0])


def renew(connection: Connection[Any], holder: str, lease: float) -> None:
    """This process lives: its reservations hold."""
    connection.execute(RENEW, {"holder": holder, "lease": lease})
