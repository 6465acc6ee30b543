"""A collection whose campaign a day's budget stopped: one judge with a price, one without, people, gold, audits."""

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from annotation.models import Assignment, Membership
from corpus.models import Collection, Pair
from judges.costs import counters
from judges.models import Campaign, Work
from tests.evidence import make_assessor, make_attempt, make_audit, make_campaign, make_judge, make_judgment, make_label
from tests.factories import make_collection, make_item, make_member, make_pair

LEDGER = """
INSERT INTO judges_ledger (campaign_id, shard, day, judge_id, role, round, outcome, calls, calls_cached,
    calls_without_price, tokens_in, tokens_cached, tokens_out, cost)
SELECT campaign_id, 0, (created_at AT TIME ZONE 'UTC')::date AS day, judge_id, role, round, outcome,
    count(*) FILTER (WHERE NOT cached), count(*) FILTER (WHERE cached), count(*) FILTER (WHERE cost IS NULL),
    sum(tokens_in), sum(tokens_cached), sum(tokens_out), COALESCE(sum(cost), 0)
FROM judges_attempt GROUP BY campaign_id, day, judge_id, role, round, outcome
"""
SUMS = """
INSERT INTO judges_collectiontally (collection_id, shard, spent, day, day_spent)
SELECT c.collection_id, 0, sum(l.cost), (now() AT TIME ZONE 'UTC')::date,
    COALESCE(sum(l.cost) FILTER (WHERE l.day = (now() AT TIME ZONE 'UTC')::date), 0)
FROM judges_ledger l JOIN judges_campaign c ON c.id = l.campaign_id GROUP BY 1
"""


def enter() -> None:
    """Enter attempts that a test wrote itself into the ledger and the sums."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM judges_ledger; DELETE FROM judges_collectiontally")
        cursor.execute(LEDGER)
        cursor.execute(SUMS)


def judged_books() -> Collection:
    """Judge one costs 10 cents a call, judge two has no price; people take 36 s at 100 dollars an hour: 1 dollar."""
    books = make_collection("books", hourly_rate=100.0)
    one, two = make_judge("one", input_price=1.0, output_price=1.0), make_judge("two")
    campaign = make_campaign(books, [one, two], policy="debate+ensemble", state="budget", stopped_by="day")
    alice, gold = make_member(books, "alice"), make_assessor(books, "reference", "reference")
    for number in range(5):
        pair = make_pair(books)
        side = {"role": "for", "round": 1, "tokens_in": 100, "tokens_out": 10}
        make_attempt(campaign, pair, one, 1, cost=0.10, **side)
        make_attempt(campaign, pair, one, 1, cost=0.10, **{**side, "round": 2})
        if number == 4:
            _escalated(campaign, pair, alice)
            continue
        make_attempt(campaign, pair, two, None, counts=False, outcome="unparsed", cost=None)
        make_attempt(campaign, pair, two, 1, number=2, cost=None)
        make_attempt(campaign, pair, one, 1, place=1, cached=True, cost=0.0)
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1)
        make_label(pair, 1, campaign.policy)
        make_judgment(pair, gold, int(number > 0))
    for key, n in {"pairs": 5, "labelled:1": 4, "escalated:split": 1, "settled": 1, "calls": 18, "cost": 1.0}.items():
        counters.add(campaign.pk, key, n)
    counters.add(campaign.pk, "calls_without_price", 8)
    counters.add(campaign.pk, "calls_cached", 4)
    enter()
    return books


def _escalated(campaign: Campaign, pair: Pair, alice: Membership) -> None:
    Work.objects.create(campaign=campaign, pair=pair, state="escalated", reason="split")
    item = make_item(pair, "split", campaign=campaign.pk, state="settled", taken=1, done=1)
    judgment = make_judgment(pair, alice.assessor, 1, item=item, milliseconds=36_000)
    now = timezone.now()
    Assignment.objects.create(
        item=item, membership=alice, state="done", judgment=judgment, lease_until=now, ended_at=now - timedelta(1)
    )
    make_label(pair, 1, "people")


def audits(campaign: Campaign, right: int, wrong: int) -> None:
    """Of the campaign's labelled pairs so many are audited by two people each."""
    people = [make_assessor(campaign.collection, f"auditor-{place}") for place in range(2)]
    labelled = Work.objects.filter(campaign=campaign, state="labelled").order_by("pk")
    for number, work in enumerate(labelled[: right + wrong]):
        make_audit(campaign, work.pair, people, int(number < right))
    counters.add(campaign.pk, "route:r1.m5.y", labelled.count())
    counters.add(campaign.pk, "audited", right + wrong)
