"""Past and expected costs of judging: model calls, and people's time at the hourly rate."""

from typing import Any

from annotation.quality.label_quality.records import Costs
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.domain.audits import OVERLAP
from judges.models import Campaign
from store.sql import fetch_rows

# Counters of people's work: of all campaigns of a collection, and of one campaign.
PEOPLE_COUNTERS = """
SELECT t.key, sum(t.value), COALESCE(
    sum(t.value) FILTER (WHERE t.campaign_id = %(campaign)s OR %(campaign)s::bigint IS NULL), 0)
FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
WHERE c.collection_id = %(collection)s AND (t.key LIKE 'escalated:%%' OR t.key IN ('settled', 'moved', 'audited'))
GROUP BY t.key
"""


def campaign_costs(collection: Collection, status: dict[str, Any], campaign: Campaign | None = None) -> Costs:
    """Return the costs so far and to come of people's work and of a campaign, or of all campaigns of a collection.

    `status`: counts of pairs and the cost of calls, as `campaign_status` returns them. Two SQL statements.
    """
    seconds = median_seconds(collection)
    rows = fetch_rows(PEOPLE_COUNTERS, collection=collection.pk, campaign=campaign.pk if campaign else None)
    counts = {key: float(n) for key, n, _own in rows}
    # Judgments that people gave and still owe, counted by resolved tasks: those of half-judged tasks count as owed.
    audits = counts.get("escalated:audit", 0.0)
    escalated = sum(n for key, n in counts.items() if key.startswith("escalated:")) - audits
    resolved, audited = counts.get("settled", 0.0), counts.get("audited", 0.0)
    open_tasks = max(0.0, escalated - resolved - counts.get("moved", 0.0))
    judgments_done = resolved * collection.overlap + audited * OVERLAP
    judgments_owed = open_tasks * collection.overlap + max(0.0, audits - audited) * OVERLAP
    hours = judgments_done * (seconds or 0.0) / 3600
    hours_forecast = None if seconds is None and judgments_owed else judgments_owed * (seconds or 0.0) / 3600
    rate = collection.hourly_rate
    # Pairs that wait for judges, at the average cost of a pair so far.
    open_pairs = status["pending"] + status["running"]
    ended_pairs = status["labelled"] + status["escalated"] + status["failed"]
    forecast = status["cost"] / ended_pairs * open_pairs if ended_pairs and status["cost"] is not None else None
    return Costs(
        machine=status["cost"],
        calls_without_price=status["calls_without_price"],
        machine_forecast=forecast if open_pairs else 0.0,
        people_hours=hours,
        people=None if rate is None else hours * rate,
        waiting=int(judgments_owed),
        hours_forecast=hours_forecast,
        people_forecast=None if rate is None or hours_forecast is None else hours_forecast * rate,
        hourly_rate=rate,
        median_seconds=seconds,
        own={key: float(n) for key, _all, n in rows},
    )
