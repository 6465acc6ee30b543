"""How long the calls of a pair took, and what a campaign's pairs took in the middle."""

from datetime import UTC, datetime, timedelta

import pytest

from corpus.models import Pair
from judges.campaigns.selectors import latency_medians, latency_of
from judges.models import Attempt, Campaign, JudgeVersion
from tests.engine_parts import collection_of
from tests.evidence import make_attempt, make_judge

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def campaign(db: None) -> Campaign:
    """On five pairs."""
    return Campaign.objects.create(collection=collection_of(5), policy="debate", panel="main")


def sent(campaign: Campaign, pair: Pair, after: float, milliseconds: int, **values: object) -> None:
    judge = JudgeVersion.objects.filter(name="Charlie").first() or make_judge("Charlie")
    place = Attempt.objects.filter(pair=pair).count()
    about = {"place": place, "number": place, "outcome": "error", "counts": False, "milliseconds": milliseconds}
    make_attempt(campaign, pair, judge, None, started_at=NOON + timedelta(seconds=after), **about, **values)


def test_calls_side_by_side_take_their_sum_and_less_by_the_clock(campaign: Campaign) -> None:
    pair = campaign.collection.pair_set.first()
    assert pair is not None and latency_of(pair, campaign) is None
    sent(campaign, pair, 0.0, 1000)
    sent(campaign, pair, 0.5, 1000)
    sent(campaign, pair, 9.0, 5, cached=True)
    assert latency_of(pair, campaign) == {"summed": 2000, "wall": 1500}


def test_medians_are_over_pairs(campaign: Campaign) -> None:
    assert latency_medians(campaign) is None
    for place, pair in enumerate(campaign.collection.pair_set.order_by("pk")[:3]):
        sent(campaign, pair, 0, 100 * (place + 1))
        sent(campaign, pair, 1, 0)
    assert latency_medians(campaign) == {"summed": 200, "wall": 1000}
