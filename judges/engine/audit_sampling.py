"""Audits beyond those that are drawn with the label: the sample filled up, and more of it on request.

A sample of n pairs of a stratum is those n with the smallest numbers (domain.audits.uniform_draw).
So it only ever grows, and the same request again changes nothing. A stratum is a route within a
part of the campaign: what joins a campaign that ended is sampled apart, or those pairs would count
by the probability of the earlier ones.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _
from psycopg import Connection

from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadInput
from judges.costs import counters
from judges.domain.audits import allocate_sample, audit_sample_size
from judges.models import Campaign
from store.sql import read_sql

SIZES = read_sql(__file__, "count_audit_cells")
DRAW = read_sql(__file__, "draw_audits")
SHARES = read_sql(__file__, "set_audit_shares")

# All that were drawn, those among them that people met since for another reason.
DRAWN = "SELECT stratum, count(*) FROM judges_audit WHERE campaign_id = %(campaign)s AND stratum <> '' GROUP BY stratum"

OTHERS = """
SELECT (SELECT audit FROM corpus_collection WHERE id = %(collection)s), count(*)
FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
WHERE p.collection_id = %(collection)s AND l.aspect_id IS NULL AND NOT EXISTS (
    SELECT FROM judges_work w WHERE w.campaign_id = %(campaign)s AND w.pair_id = p.id)
"""

END_PART = "UPDATE judges_campaign SET sampled_at = sampled_at || clock_timestamp() WHERE id = %(campaign)s"

# Before, the pairs that are labelled later would come into the sample by another chance than those that are.
ENDED = (Campaign.State.FINISHED, Campaign.State.CANCELLED)

# Two that sample a campaign at once do so one after the other; the answer is how many parts of it have ended.
LOCK = "SELECT cardinality(sampled_at) FROM judges_campaign WHERE id = %(campaign)s FOR NO KEY UPDATE"


def top_up_sample(db: Connection[Any], *, campaign: int, collection: int) -> int:
    """Sample what a campaign labelled since its last end; how many pairs."""
    values = {"campaign": campaign, "collection": collection}
    (part,) = db.execute(LOCK, values).fetchone() or (0,)
    every, drawn = _stratum_sizes(db, campaign)
    sizes = {key: size for key, size in every.items() if key.endswith(f"/{part}")}
    if not sizes:
        return 0
    audit, others = db.execute(OTHERS, values).fetchone() or (0.0, 0)
    labelled = sum(sizes.values())
    sample_size = audit_sample_size(audit, labelled, int(others) + sum(every.values()) - labelled)
    # One pair of each route at least: what nobody audits would be missing from the estimate.
    count = _draw_pairs(db, campaign, allocate_sample(sizes, max(sample_size, len(sizes)), drawn)) if sample_size else 0
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
    drawn_by_route = {key: int(n) for key, n in db.execute(DRAWN, {"campaign": campaign.pk}).fetchall()}
    if route:
        drawn_by_route = {route: drawn_by_route.get(route, 0)}
        sizes = {key: size for key, size in sizes.items() if key.startswith(f"{route}/")}
    more = max(0, up_to - sum(drawn_by_route.values()))
    count = _draw_pairs(db, campaign.pk, allocate_sample(sizes, sum(drawn[key] for key in sizes) + more, drawn))
    if count:
        forget_watermarks(campaign.collection)
    return count


def remaining_by_stratum(campaign: int) -> dict[str, int]:
    """How many more pairs of each stratum can be drawn: labelled ones that people have not met."""
    connection.ensure_connection()
    sizes, drawn = _stratum_sizes(connection.connection, campaign)
    return {key: size - drawn[key] for key, size in sizes.items()}


def _stratum_sizes(db: Connection[Any], campaign: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return pairs of each stratum that can be drawn, and how many are."""
    rows = db.execute(SIZES, {"campaign": campaign}).fetchall()
    return {key: int(size) for key, size, _ in rows}, {key: int(drawn) for key, _, drawn in rows}


def _draw_pairs(db: Connection[Any], campaign: int, targets: Mapping[str, int]) -> int:
    values = {"campaign": campaign, "wanted": json.dumps(dict(targets)), "shard": counters.random_shard()}
    (count,) = db.execute(DRAW, values).fetchone() or (0,)
    db.execute(SHARES, {"campaign": campaign})
    return int(count)
