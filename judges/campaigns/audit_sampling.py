"""Audits beyond those that are drawn with the label: the sample filled up, and more of it on request.

A sample of n pairs of a stratum is those n with the smallest numbers (domain.audits.uniform_draw). So it only ever
grows, and the same request again changes nothing. A stratum is a route within a part of the campaign: what joins a
campaign that ended is sampled apart, or those pairs would count by the probability of the earlier ones.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _
from psycopg import Connection

from corpus.collections.task_order import MEASURING, PRIORITY_SQL, forget_watermarks, open_items
from corpus.errors import BadInput
from judges.campaigns import counters
from judges.campaigns.route_breakers import PART
from judges.domain.audits import OVERLAP, allocate_sample, audit_sample_size
from judges.models import Campaign

_MET = ", ".join(f"'{reason}'" for reason in ("audit", *MEASURING))
# A campaign's labelled pairs that no person met for another reason, with the number of audits.uniform_draw.
FRAME = f"""
SELECT w.pair_id, w.stratum, {PART} AS part, w.stratum || '/' || {PART} AS cell, w.label,
       substr(encode(sha256(convert_to(
           'audit:' || c.seed || ':' || w.pair_id, 'UTF8')), 'hex'), 1, 12) AS number
FROM judges_work w JOIN judges_campaign g ON g.id = w.campaign_id JOIN corpus_collection c ON c.id = g.collection_id
WHERE w.campaign_id = %(campaign)s AND w.state = 'labelled' AND w.stratum <> ''
  AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = w.pair_id AND i.reason NOT IN ({_MET}))
"""

# Pairs of each stratum, and those up to the highest number that was drawn: they belong to the sample. They are drawn
# already, unless the collection's share of audits was lowered while the campaign ran.
SIZES = f"""
SELECT cell, count(*), count(*) FILTER (WHERE number <= highest) FROM (
    SELECT f.cell, f.number, max(f.number) FILTER (WHERE a.id IS NOT NULL) OVER (PARTITION BY f.cell) AS highest
    FROM ({FRAME}) f LEFT JOIN judges_audit a ON a.campaign_id = %(campaign)s AND a.pair_id = f.pair_id) found
GROUP BY cell
"""

# All that were drawn, those among them that people met since for another reason.
DRAWN = "SELECT stratum, count(*) FROM judges_audit WHERE campaign_id = %(campaign)s AND stratum <> '' GROUP BY stratum"

OTHERS = """
SELECT (SELECT audit FROM corpus_collection WHERE id = %(collection)s), count(*)
FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
WHERE p.collection_id = %(collection)s AND l.aspect_id IS NULL AND NOT EXISTS (
    SELECT FROM judges_work w WHERE w.campaign_id = %(campaign)s AND w.pair_id = p.id)
"""

WANTED = f"""
SELECT p.collection_id AS collection, p.id AS pair, %(campaign)s::bigint AS campaign, 'audit' AS reason,
       {PRIORITY_SQL.format(order="c.order", seed="c.seed")} AS priority, {OVERLAP} AS overlap
FROM more m JOIN corpus_pair p ON p.id = m.pair_id JOIN corpus_collection c ON c.id = p.collection_id
WHERE m.item IS NULL"""

DRAW = f"""
WITH wanted AS (SELECT key AS cell, value::int AS n FROM json_each_text(%(wanted)s::json)),
ranked AS MATERIALIZED (
    SELECT f.*, row_number() OVER (PARTITION BY f.cell ORDER BY f.number, f.pair_id) AS rank,
           count(*) OVER (PARTITION BY f.cell) AS size
    FROM ({FRAME}) f
),
more AS MATERIALIZED (
    SELECT r.*, i.id AS item, i.state AS known, w.n::float8 / r.size AS share
    FROM ranked r JOIN wanted w ON w.cell = r.cell AND r.rank <= w.n
    LEFT JOIN LATERAL (
        SELECT id, state FROM corpus_item WHERE pair_id = r.pair_id AND reason = 'audit' AND state <> 'withdrawn'
        ORDER BY seq DESC LIMIT 1) i ON true
    WHERE NOT EXISTS (SELECT FROM judges_audit a WHERE a.campaign_id = %(campaign)s AND a.pair_id = r.pair_id)
),
opened AS (
    {open_items(WANTED)} RETURNING id, pair_id
),
audited AS (
    INSERT INTO judges_audit (campaign_id, pair_id, item_id, stratum, probability, label)
    SELECT %(campaign)s, m.pair_id, COALESCE(m.item, o.id), m.stratum, m.share, m.label
    FROM more m LEFT JOIN opened o ON o.pair_id = m.pair_id ORDER BY m.pair_id
    RETURNING pair_id
),
sums AS (
    SELECT %(campaign)s::bigint AS campaign, %(shard)s::int AS shard, key, sum(n) AS value FROM (
        SELECT 'escalated:audit', 1 FROM audited
        UNION ALL SELECT 'audited', 1 FROM more WHERE known = 'settled') AS k(key, n) GROUP BY key ORDER BY key
),
tallied AS ({counters.ADD.format(rows="SELECT campaign, shard, key, value FROM sums")})
SELECT count(*) FROM audited
"""

# The probability of a stratum's pairs is its share that is in the sample, for those that were drawn before as well.
SHARES = f"""
UPDATE judges_audit a SET probability = s.share
FROM judges_work w JOIN judges_campaign g ON g.id = w.campaign_id, (
    SELECT f.stratum, f.part, count(b.id)::float8 / count(*) AS share
    FROM ({FRAME}) f LEFT JOIN judges_audit b ON b.campaign_id = %(campaign)s AND b.pair_id = f.pair_id
    GROUP BY f.stratum, f.part) s
WHERE a.campaign_id = %(campaign)s AND w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id
  AND a.stratum = s.stratum AND {PART} = s.part AND s.share > 0 AND a.probability <> s.share
"""

END_PART = "UPDATE judges_campaign SET sampled_at = sampled_at || clock_timestamp() WHERE id = %(campaign)s"

# Before, the pairs that are labelled later would come into the sample by another chance than those that are.
ENDED = (Campaign.State.FINISHED, Campaign.State.CANCELLED)

# Two that sample a campaign at once do so one after the other; the answer is how many parts of it have ended.
LOCK = "SELECT cardinality(sampled_at) FROM judges_campaign WHERE id = %(campaign)s FOR NO KEY UPDATE"


def top_up_sample(db: Connection[Any], *, campaign: int, collection: int) -> int:
    """Sample what a campaign labelled since it last ended, as the collection asks; how many pairs it is."""
    values = {"campaign": campaign, "collection": collection}
    (part,) = db.execute(LOCK, values).fetchone() or (0,)
    every, drawn = _stratum_sizes(db, campaign)
    sizes = {key: size for key, size in every.items() if key.endswith(f"/{part}")}
    if not sizes:
        return 0
    audit, others = db.execute(OTHERS, values).fetchone() or (0.0, 0)
    labelled = sum(sizes.values())
    wanted = audit_sample_size(audit, labelled, int(others) + sum(every.values()) - labelled)
    # One pair of each route at least: what nobody audits would be missing from the estimate.
    count = _draw_pairs(db, campaign, allocate_sample(sizes, max(wanted, len(sizes)), drawn)) if wanted else 0
    db.execute(END_PART, values)
    return count


@transaction.atomic
def draw_more(*, campaign: Campaign, up_to: int, route: str = "") -> int:
    """Draw more audits, up to `up_to` pairs or all, of one route where it is named; return the number drawn.

    Raises BadInput.
    """
    connection.ensure_connection()
    db: Connection[Any] = connection.connection
    db.execute(LOCK, {"campaign": campaign.pk})
    campaign.refresh_from_db(fields=["state"])
    if campaign.state not in ENDED:
        raise BadInput(_("You can draw more once the campaign has ended, so that every label has the same chance."))
    sizes, drawn = _stratum_sizes(db, campaign.pk)
    known = {key: int(n) for key, n in db.execute(DRAWN, {"campaign": campaign.pk}).fetchall()}
    if route:
        known = {route: known.get(route, 0)}
        sizes = {key: size for key, size in sizes.items() if key.startswith(f"{route}/")}
    more = max(0, up_to - sum(known.values()))
    count = _draw_pairs(db, campaign.pk, allocate_sample(sizes, sum(drawn[key] for key in sizes) + more, drawn))
    if count:
        forget_watermarks(campaign.collection)
    return count


def remaining_by_stratum(campaign: int) -> dict[str, int]:
    """Return how many more pairs of each stratum can be drawn: labelled ones that people have not met."""
    connection.ensure_connection()
    sizes, drawn = _stratum_sizes(connection.connection, campaign)
    return {key: size - drawn[key] for key, size in sizes.items()}


def _stratum_sizes(db: Connection[Any], campaign: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return pairs of each stratum that can be drawn, and how many are."""
    found = db.execute(SIZES, {"campaign": campaign}).fetchall()
    return {key: int(size) for key, size, _ in found}, {key: int(drawn) for key, _, drawn in found}


def _draw_pairs(db: Connection[Any], campaign: int, wanted: Mapping[str, int]) -> int:
    values = {"campaign": campaign, "wanted": json.dumps(dict(wanted)), "shard": counters.random_shard()}
    (count,) = db.execute(DRAW, values).fetchone() or (0,)
    db.execute(SHARES, {"campaign": campaign})
    return int(count)
