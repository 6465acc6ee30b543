"""Migration 0027 back and forth: an older version finds what was spent and held where it looks for it."""

from collections.abc import Callable

import pytest

from tests.instances import Instance


@pytest.mark.slow
def test_the_way_back_sums_up_what_stands_in_shards(make_instance: Callable[..., Instance]) -> None:
    instance = make_instance()
    instance.hold()
    made = instance.manage("shell", "-v0", "-c", SCENE)
    assert made.returncode == 0, made.stderr
    back = instance.manage("migrate", "judges", "0026", "-v0")
    assert back.returncode == 0, back.stderr
    account = instance.sql("SELECT concat_ws(' ', spent, reserved, calls_reserved, day_spent) FROM judges_account")
    assert account == "3.5 1 3 0.5"
    campaigns = "SELECT string_agg(concat_ws(' ', spent, reserved, calls_spent, calls_reserved), ', ' ORDER BY id)"
    assert instance.sql(f"{campaigns} FROM judges_campaign") == "1.5 0.75 8 2, 2 0.25 0 1"
    forth = instance.manage("migrate", "-v0")
    assert forth.returncode == 0, forth.stderr
    assert instance.sql("SELECT concat_ws(' ', shard, spent, day_spent) FROM judges_collectiontally") == "0 3.5 0.5"


SCENE = """
from datetime import UTC, datetime
from corpus.models import Collection
from judges.campaigns import counters
from judges.models import Campaign, Reservation
from judges.models.costs import CollectionTally
birds = Collection.objects.create(name="birds")
one, two = (Campaign.objects.create(collection=birds, policy="single", panel="main") for _ in range(2))
for shard in (1, 2):
    for key, value in (("cost", 0.5), ("cost_possible", 0.25), ("calls", 3), ("calls_possible", 1)):
        counters.add(one.pk, key, value, on=shard)
counters.add(two.pk, "cost_assumed", 2.0, on=3)
today = datetime.now(UTC).date()
CollectionTally.objects.create(collection=birds, shard=1, spent=1.0, day=today, day_spent=0.5)
CollectionTally.objects.create(collection=birds, shard=2, spent=2.5, day="2020-01-01", day_spent=9.0)
for campaign, usd, calls in ((one, 0.75, 2), (two, 0.25, 1)):
    Reservation.objects.create(campaign=campaign, holder="x", usd=usd, calls=calls, until="2100-01-01T00:00:00Z")
"""
