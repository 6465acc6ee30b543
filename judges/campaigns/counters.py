"""Counters of a campaign, written in the transaction of what they count; status pages read only these.

Keys: `pairs`, `written` (good targets of an evidence campaign), `labelled:<0|1>`, `escalated:<reason>`, `failed`,
`agreed:<round>`, `settled` (items of the campaign that people settled, but for audits), `audited` (audits that they
settled), `route:<stratum>` (labelled pairs by how they came to the label, judges.domain.audits; `escalated:audit` are
those drawn), `stopped:<stratum>` and `resumed:<stratum>` (judges.campaigns.route_breakers), `moved` (open items that a
later campaign escalated again and took over), `calls`, `calls_failed`, `calls_cached`, `calls_without_price` (of
unknown cost), of these `calls_assumed`, for which `cost_assumed` stands (the most that they can have cost),
`calls_possible` and `cost_possible` (what workers of a lost machine held, at most: judges.costs.budget), `tokens_in`,
of them `tokens_cached` and `tokens_written`, `tokens_out`, `tokens_reasoning`, `cost`.
"""

import random
from collections import defaultdict

from django.db import connection

SHARDS = 16

# Add to counters: format it with `rows`, a VALUES list or an ordered SELECT of (campaign, shard, key, value).
ADD = """INSERT INTO judges_tally AS t (campaign_id, shard, key, value) {rows}
ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value"""

ADD_ONE = ADD.format(rows="VALUES (%(campaign)s, %(shard)s, %(key)s, %(value)s)")


def random_shard() -> int:
    """One of the shards, so that concurrent writers rarely meet on a row."""
    return random.randrange(SHARDS)


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
