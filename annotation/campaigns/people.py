"""Forecast of a campaign's work for people: pairs sent to them and hours; and of the models' time.

From this collection's earlier campaigns where there are any, else from what DREAM measured (B.2, table 11).
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from annotation.campaigns.rows import CampaignRow, load_counters
from annotation.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.campaigns.configurations import Configuration
from judges.campaigns.selectors import latency_medians
from judges.domain.routing import VOTES_OF_HUMAN
from judges.models import Campaign

# DREAM, table 11: pairs that two debaters leave to people, and a person's and the debate's seconds for a pair.
ESCALATED, PERSON_SECONDS, DEBATE_SECONDS = 0.035, 30.0, 4.3
LEAST = 20  # Pairs of earlier campaigns from which their share is taken.
NEWEST = 20  # Earlier campaigns that are looked at.
Policy = Campaign.Policy


def estimate_people(collection: Collection, wanted: Configuration, pairs: int, calls: float) -> dict[str, Any]:
    """Estimate what so many pairs leave to people under this configuration, for which models get so many calls.

    `seconds`: of a judgment, the median of those here where it is `timed`, else the paper's. `basis`: where the share
    comes from, "policy" or "collection" (earlier campaigns here, `measured` pairs), "rule" or "paper". `cost`: USD,
    None without a rate. `models_timed`: the time of the models is from an earlier campaign here.
    """
    judging = Campaign.judging.filter(collection=collection).exclude(policy=Policy.HUMAN).order_by("-pk")
    earlier = list(judging[:NEWEST])
    share, basis, measured = _expected_share(earlier, wanted)
    each = max(VOTES_OF_HUMAN, collection.overlap) if wanted.policy == Policy.HUMAN else collection.overlap
    seconds = median_seconds(collection)
    same = next((one for one in earlier if one.policy == wanted.policy), None)
    latency = latency_medians(same) if same else None
    come = round(pairs * share)
    model_seconds = latency["wall"] / 1000 if latency else DEBATE_SECONDS
    # So many pairs at once, and at least as long as the slowest account's limit asks for: calls are shared evenly.
    limits = [judge.requests_per_minute for judge in wanted.judges if judge.requests_per_minute]
    paced = calls / max(1, len(wanted.judges)) / min(limits) * 60 if limits else 0.0
    each_seconds = PERSON_SECONDS if seconds is None else seconds
    hours = come * each * each_seconds / 3600
    return {
        "share": share,
        "share_text": f"{share:.1%}",
        "pairs": come,
        "judgments": come * each,
        "seconds": each_seconds,
        "hours": hours,
        "cost": None if collection.hourly_rate is None else hours * collection.hourly_rate,
        "basis": basis,
        "measured": measured,
        "timed": seconds is not None,
        "models_seconds": max(model_seconds, pairs * model_seconds / settings.PAIRS_IN_FLIGHT, paced),
        "models_timed": latency is not None,
    }


def _expected_share(earlier: Sequence[Campaign], wanted: Configuration) -> tuple[float, str, int]:
    """Return the share of pairs that come to people, where it is from, and the pairs that it was measured on."""
    if wanted.policy == Policy.HUMAN:
        return 1.0, "rule", 0
    counts = load_counters([one.pk for one in earlier])
    rows = [CampaignRow(one, counts[one.pk]) for one in earlier]
    for basis, found in (
        ("policy", [one for one in rows if one.campaign.policy == wanted.policy]),
        ("collection", rows),
    ):
        ended = sum(one.ended for one in found)
        # A single judge's campaigns and the others' say nothing of each other: it sends no pair to people.
        if ended >= LEAST and (basis == "policy" or wanted.policy != Policy.SINGLE):
            return sum(one.escalated for one in found) / ended, basis, ended
    return (0.0, "rule", 0) if wanted.policy == Policy.SINGLE else (ESCALATED, "paper", 0)
