"""Counters of a campaign, written in the transaction of what they count; status pages read only these.

Keys: `pairs`, `written` (good targets of an evidence campaign), `labelled:<0|1>`, `escalated:<reason>`, `failed`,
`agreed:<round>`, `settled` (tasks of the campaign that people resolved, without audits), `audited` (audits that they
resolved), `route:<stratum>` (labelled pairs by their route to the label, judges.domain.audits; `escalated:audit` are
those drawn), `stopped:<stratum>` and `resumed:<stratum>` (judges.engine.route_breakers), `moved` (open items that a
later campaign escalated again and took over), `calls`, `calls_failed`, `calls_cached`, `calls_without_price` (of
unknown cost), of these `calls_assumed`, which are counted as `cost_assumed` (the most that they can have cost),
`calls_possible` and `cost_possible` (reservations of a lost machine's workers: judges.engine.budget), `tokens_in`,
of them `tokens_cached` and `tokens_written`, `tokens_out`, `tokens_reasoning`, `cost`,
`answered:<judge's id>:<model>` (calls that another model answered under the judge's name).

What a campaign spent is the sum of `COSTS`, computed when it is read. Collections have separate sums in
shards (judges.models.costs.CollectionTally), because a collection may have thousands of campaigns.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from store.sql import execute, fetch_rows

# More than the worker processes of a usual instance; a read adds up as many rows for each key (docs/adr/0025).
SHARDS = 16
COSTS = ("cost", "cost_assumed", "cost_possible")  # Keys that add up to what a campaign spent, in USD.
CALLS = ("calls", "calls_possible")  # Keys that add up to the calls that its limit counts.

# The first shard that no other session holds; the lock ends with the session.
CLAIM_SHARD = "SELECT shard FROM unnest(%s::int[]) AS shard WHERE pg_try_advisory_lock(7111, shard) LIMIT 1"

ADD = """
INSERT INTO judges_tally AS t (campaign_id, shard, key, value) VALUES (%(campaign)s, %(shard)s, %(key)s, %(value)s)
ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
"""
SUMS = "SELECT key, sum(value) FROM judges_tally WHERE campaign_id = %(campaign)s GROUP BY key"


def random_shard() -> int:
    """Return a random shard, so that concurrent writers rarely lock the same row."""
    return random.randrange(SHARDS)


def claim_shard(connection: Connection[Any]) -> int:
    """Claim a shard for this process alone, as long as the connection is open; if all are claimed, share one."""
    row = connection.execute(CLAIM_SHARD, [random.sample(range(SHARDS), SHARDS)]).fetchone()
    return int(row[0]) if row else random_shard()


def add(campaign: int, key: str, value: float, *, on: int | None = None) -> None:
    """Add to one counter, in the caller's transaction; on a random shard unless `on` names one."""
    shard = random_shard() if on is None else on
    execute(ADD, campaign=campaign, shard=shard, key=key, value=value)


def read(campaign: int) -> dict[str, float]:
    """Return every counter of the campaign; a key that was never added to counts 0."""
    return defaultdict(float, fetch_rows(SUMS, campaign=campaign))


def total_cost(sums: Mapping[str, float]) -> float:
    """Return what a campaign spent, in USD, from its counters, including assumed costs of calls of unknown cost."""
    return sum(sums.get(key, 0.0) for key in COSTS)
