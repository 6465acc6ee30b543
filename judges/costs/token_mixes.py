"""Token counts of judges' earlier answers, for estimates: shares of the input in caches, and tokens of reasoning."""

from collections.abc import Iterable

from django.db import connection

from judges.campaigns.estimates import Mix
from judges.records import WITHOUT_PAIR, Judge

LATEST = 200  # Answers that are read of each judge, from the newest campaign in which it was asked.

# Versions that differ in their price alone are asked alike.
ANSWERS = """
WITH alike AS (
    SELECT v.id AS judge, o.id AS version FROM judges_judgeversion v
    JOIN judges_judgeversion o USING (provider, base_url, model, parameters) WHERE v.id = ANY(%(judges)s)
),
newest AS (
    SELECT DISTINCT ON (alike.judge) alike.judge, alike.version, l.campaign_id
    FROM alike JOIN judges_ledger l ON l.judge_id = alike.version
    WHERE l.calls > 0 AND l.tokens_in > 0 AND l.role <> ALL(%(apart)s) ORDER BY alike.judge, l.campaign_id DESC
)
SELECT newest.judge, count(*), sum(a.tokens_cached)::float8 / sum(a.tokens_in),
    sum(a.tokens_written)::float8 / sum(a.tokens_in), avg(a.tokens_reasoning)::float8
FROM newest CROSS JOIN LATERAL (
    SELECT tokens_in, tokens_cached, tokens_written, tokens_reasoning FROM judges_attempt
    WHERE campaign_id = newest.campaign_id AND judge_id = newest.version AND NOT cached AND tokens_in > 0
    ORDER BY pair_id DESC, id DESC LIMIT %(latest)s) a
GROUP BY newest.judge
"""


def mixes_of(judges: Iterable[Judge]) -> dict[int, Mix]:
    """Read the mixes of judges that have answered before, by id. One statement, none for offline judges alone."""
    asked = list({judge.id for judge in judges if judge.provider != "offline"})
    if not asked:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(ANSWERS, {"judges": asked, "apart": list(WITHOUT_PAIR), "latest": LATEST})
        return {judge: Mix(*counts) for judge, *counts in cursor.fetchall()}
