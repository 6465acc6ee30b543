"""Counters of a campaign, written in the transaction of what they count; status pages read only these.

Keys: `pairs`, `written` (good targets of an evidence campaign), `labelled:<0|1>`, `escalated:<reason>`, `failed`,
`agreed:<round>`, `settled` (items of the campaign that people settled, but for audits), `audited` (audits that they
settled), `route:<stratum>` (labelled pairs by how they came to the label, judges.domain.audits; `escalated:audit` are
those drawn), `stopped:<stratum>` and `resumed:<stratum>` (judges.campaigns.route_breakers), `moved` (open items that a
later campaign escalated again and took over), `calls`, `calls_failed`, `calls_cached`, `calls_without_price` (of
unknown cost), of these `calls_assumed`, for which `cost_assumed` stands (the most that they can have cost),
`calls_possible` and `cost_possible` (what workers of a lost machine held, at most: judges.costs.budget), `tokens_in`,
of them `tokens_cached` and `tokens_written`, `tokens_out`, `tokens_reasoning`, `cost`,
`answered:<judge's id>:<model>` (calls that another model answered under the judge's name).

What a campaign spent is their sum (`COSTS`, `CALLS`), read when it is asked for; of a collection it stands in shards of
its own (judges.models.costs.CollectionTally), because a collection may have thousands of campaigns.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db import connection
from psycopg import Connection

# More than the worker processes of a usual instance; a read adds up as many rows for each key (docs/adr/0110).
SHARDS = 16
COSTS = ("cost", "cost_assumed", "cost_possible")  # Keys that add up to what a campaign spent, in USD.
CALLS = ("calls", "calls_possible")  # Keys that add up to the calls that its limit counts.

# Add to counters: format it with `rows`, a VALUES list or an ordered SELECT of (campaign, shard, key, value).
ADD = """INSERT INTO judges_tally AS t (campaign_id, shard, key, value) {rows}
ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value"""

# The same for what a collection spent: format of the rows (collection, shard, spent, day, day_spent). A transaction
# that began before midnight may come after one of the new day, whose sum stays.
ADD_COST = """ON CONFLICT (collection_id, shard) DO UPDATE
SET spent = t.spent + EXCLUDED.spent, day = GREATEST(t.day, EXCLUDED.day),
    day_spent = CASE WHEN t.day > EXCLUDED.day THEN t.day_spent WHEN t.day < EXCLUDED.day THEN EXCLUDED.day_spent
                     ELSE t.day_spent + EXCLUDED.day_spent END"""

# The first shard that no other session holds; the lock ends with the session.
CLAIM_SHARD = "SELECT shard FROM unnest(%s::int[]) AS shard WHERE pg_try_advisory_lock(7111, shard) LIMIT 1"

ADD_ONE = ADD.format(rows="VALUES (%(campaign)s, %(shard)s, %(key)s, %(value)s)")


def random_shard() -> int:
    """Return a shard by chance, so that concurrent writers rarely meet on a row."""
    return random.randrange(SHARDS)


def claim_shard(connection: Connection[Any]) -> int:
    """Claim a shard that no other living process writes to, as long as the connection stands.

    Where all are claimed it is one of them, shared.
    """
    row = connection.execute(CLAIM_SHARD, [random.sample(range(SHARDS), SHARDS)]).fetchone()
    return int(row[0]) if row else random_shard()


def add(campaign: int, key: str, value: float, *, on: int | None = None) -> None:
    """Add to one counter, in the caller's transaction; on any shard unless one is named."""
    place = random_shard() if on is None else on
    with connection.cursor() as cursor:
        cursor.execute(ADD_ONE, {"campaign": campaign, "shard": place, "key": key, "value": value})


def read(campaign: int) -> dict[str, float]:
    """Return every counter of the campaign; a key that was never added to counts 0."""
    found: dict[str, float] = defaultdict(float)
    with connection.cursor() as cursor:
        cursor.execute("SELECT key, sum(value) FROM judges_tally WHERE campaign_id = %s GROUP BY key", [campaign])
        found.update(dict(cursor.fetchall()))
    return found


def total_cost(sums: Mapping[str, float]) -> float:
    """Return what a campaign with these counters spent, in USD, with what is assumed of calls whose cost is unknown."""
    return sum(sums.get(key, 0.0) for key in COSTS)
