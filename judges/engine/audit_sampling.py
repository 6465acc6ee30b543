"""Audits in addition to those drawn with the label: the sample is topped up at a campaign's end, and on request.

A sample of n pairs of a stratum consists of the n with the smallest numbers (domain.audits.uniform_draw).
So a sample only ever grows, and the same request again changes nothing. A stratum is a route within a
part of the campaign: pairs that join a campaign after its end are sampled separately, as the earlier
ones were drawn with another probability.
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

# All drawn pairs, including those that people have judged since for another reason.
DRAWN = "SELECT stratum, count(*) FROM judges_audit WHERE campaign_id = %(campaign)s AND stratum <> '' GROUP BY stratum"

OTHERS = """
SELECT (SELECT audit FROM corpus_collection WHERE id = %(collection)s), count(*)
FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
WHERE p.collection_id = %(collection)s AND l.aspect_id IS NULL AND NOT EXISTS (
    SELECT FROM judges_work w WHERE w.campaign_id = %(campaign)s AND w.pair_id = p.id)
"""

END_PART = "UPDATE judges_campaign SET sampled_at = sampled_at || clock_timestamp() WHERE id = %(campaign)s"

# Before the end, pairs labelled later would enter the sample with another probability.
ENDED = (Campaign.State.FINISHED, Campaign.State.CANCELLED)

# Excludes other samplings of the campaign; returns the number of its parts that have ended.
LOCK = "SELECT cardinality(sampled_at) FROM judges_campaign WHERE id = %(campaign)s FOR NO KEY UPDATE"


def top_up_sample(db: Connection[Any], *, campaign: int, collection: int) -> int:
    """Top up the audit sample of the pairs that a campaign labelled since its last end; return the number drawn."""
    values = {"campaign": campaign, "collection": collection}
    (part,) = db.execute(LOCK, values).fetchone() or (0,)
    all_sizes, drawn = _stratum_sizes(db, campaign)
    sizes = {key: size for key, size in all_sizes.items() if key.endswith(f"/{part}")}
    if not sizes:
        return 0
    audit, others = db.execute(OTHERS, values).fetchone() or (0.0, 0)
    labelled = sum(sizes.values())
    sample_size = audit_sample_size(audit, labelled, int(others) + sum(all_sizes.values()) - labelled)
    # At least one pair of each route: an unaudited route would be missing from the estimate.
    count = _draw_pairs(db, campaign, allocate_sample(sizes, max(sample_size, len(sizes)), drawn)) if sample_size else 0
    db.execute(END_PART, values)
    return count


@transaction.atomic
def draw_more(*, campaign: Campaign, up_to: int, route: str = "") -> int:
    """Draw more audits, up to `up_to` pairs in all, of one route or of all; return the number drawn.

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
    """Return how many more pairs of each stratum can be drawn: labelled ones that no person has judged."""
    connection.ensure_connection()
    sizes, drawn = _stratum_sizes(connection.connection, campaign)
    return {key: size - drawn[key] for key, size in sizes.items()}


def _stratum_sizes(db: Connection[Any], campaign: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of pairs in each stratum that can be drawn, and the number drawn."""
    rows = db.execute(SIZES, {"campaign": campaign}).fetchall()
    return {key: int(size) for key, size, _ in rows}, {key: int(drawn) for key, _, drawn in rows}


def _draw_pairs(db: Connection[Any], campaign: int, targets: Mapping[str, int]) -> int:
    values = {"campaign": campaign, "wanted": json.dumps(dict(targets)), "shard": counters.random_shard()}
    (count,) = db.execute(DRAW, values).fetchone() or (0,)
    db.execute(SHARES, {"campaign": campaign})
    return int(count)
