"""Past and expected costs of judging: calls, and people's time at the hourly rate. Cheap."""

from typing import Any

from annotation.quality.label_quality.records import Costs
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.domain.audits import OVERLAP
from judges.models import Campaign
from store.sql import fetch_rows

WORK = """
SELECT t.key, sum(t.value), COALESCE(
    sum(t.value) FILTER (WHERE t.campaign_id = %(campaign)s OR %(campaign)s::bigint IS NULL), 0)
FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
WHERE c.collection_id = %(collection)s AND (t.key LIKE 'escalated:%%' OR t.key IN ('settled', 'moved', 'audited'))
GROUP BY t.key
"""


def campaign_costs(collection: Collection, status: dict[str, Any], campaign: Campaign | None = None) -> Costs:
    """Sum the costs of a campaign, or the collection, with this `status`, and of people's work. Two statements."""
    seconds = median_seconds(collection)
    rows = fetch_rows(WORK, collection=collection.pk, campaign=campaign.pk if campaign else None)
    counts = {key: float(n) for key, n, _own in rows}
    # Judgments that people gave and still owe, by settled items (half-judged ones count as owed).
    audits = counts.get("escalated:audit", 0.0)
    escalated = sum(n for key, n in counts.items() if key.startswith("escalated:")) - audits
    settled, audited = counts.get("settled", 0.0), counts.get("audited", 0.0)
    waiting = max(0.0, escalated - settled - counts.get("moved", 0.0))
    done = settled * collection.overlap + audited * OVERLAP
    owed = waiting * collection.overlap + max(0.0, audits - audited) * OVERLAP
    hours = done * (seconds or 0.0) / 3600
    ahead = None if seconds is None and owed else owed * (seconds or 0.0) / 3600
    rate = collection.hourly_rate
    # Pairs that wait for judges, at the price of a pair so far.
    left = status["pending"] + status["running"]
    ended = status["labelled"] + status["escalated"] + status["failed"]
    forecast = status["cost"] / ended * left if ended and status["cost"] is not None else None
    return Costs(
        machine=status["cost"],
        calls_without_price=status["calls_without_price"],
        machine_forecast=forecast if left else 0.0,
        people_hours=hours,
        people=None if rate is None else hours * rate,
        waiting=int(owed),
        hours_forecast=ahead,
        people_forecast=None if rate is None or ahead is None else ahead * rate,
        hourly_rate=rate,
        median_seconds=seconds,
        own={key: float(n) for key, _all, n in rows},
    )
