"""The table of a million pairs: it opens, sorts, and is searched (issue 14, check 9)."""

import os
import time
from datetime import UTC, datetime

import pytest
from django.test import Client

from annotation.models import Assignment, Membership
from corpus.models import Collection, Item, Judgment
from corpus.models.search import DocumentTerms
from corpus.search import full_text
from judges.models import Campaign, Work
from tests.factories import client_of
from tests.large_site import analyse, large_site
from tests.speed import slowness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.weekly]
PAIRS = int(os.environ.get("QUORUM_TEST_PAIRS", 1_000_000))
OPENS_S, ANSWERS_S = 0.3, 4.0  # the slowest answer is a word of every document, sorted by label


def median_s(client: Client, address: str) -> float:
    took = []
    for _ in range(4):
        began = time.perf_counter()
        page = client.get(address)
        took.append(time.perf_counter() - began)
        assert page.status_code == 200 and 'class="table pairs' in page.text, address
    return sorted(took[1:])[1]


def judge_some(collection: Collection, campaign: Campaign, member: Membership) -> None:
    """Flags, routes, and comments of January 2020 on a few pairs among the many."""
    done = Assignment.objects.filter(state="done", item__collection=collection).order_by("-pk")
    Assignment.objects.filter(pk__in=done.values("pk")[:50]).update(flagged=True, flag_note="Odd.")
    labelled = Work.objects.filter(campaign=campaign, state="labelled")
    labelled.update(stratum="r1.m5.y")
    Work.objects.filter(pk__in=labelled.order_by("-pk").values("pk")[:200]).update(stratum="r2.m1.n")
    for item in Item.objects.filter(collection=collection, state="settled").order_by("-pk")[:20]:
        Judgment.objects.create(
            pair_id=item.pair_id, assessor=member.assessor, item=item, step="adjudication", grade=1,
            comment="Why.", created_at=datetime(2020, 1, 2, tzinfo=UTC),
        )  # fmt: skip


def test_a_million_pairs_open_at_once_and_are_sorted_and_searched_in_seconds():
    collection, campaign, charlie = large_site(PAIRS, attempts=False)
    judge_some(collection, campaign, charlie)
    began = time.perf_counter()
    full_text.index_documents(collection.pk, lambda done, total: None, lambda: False)
    indexed = time.perf_counter() - began
    assert DocumentTerms.objects.count() == PAIRS
    analyse()
    client = client_of(charlie)
    opens = ["", "?state=open", "?state=escalated&reason=split", "?label=1", f"?after={PAIRS // 2}"]
    sorts = [
        f"?sort={sign}{key}"
        for key in ("query", "document", "state", "label", "origin", "gold", "priority")
        for sign in ("", "-")
    ]
    filters = [
        "?person=annotator-1", "?since=2020-01-01&until=2020-01-31", "?since=2020-02-01", "?comment=yes", "?flag=yes",
        "?stratum=r1.m5.y", "?stratum=r2.m1.n", "?person=annotator-1&sort=-label",
    ]  # fmt: skip
    searches = ["?q=maps", f"?q={PAIRS // 3}", "?q=hashable+4321", "?q=q77", "?q=passage+12", "?q=maps&sort=-label"]
    table = "/c/large/pairs/"
    found = {part: median_s(client, table + part) for part in (*opens, *sorts, *filters, *searches)}
    print(f"\nindexed {PAIRS:,} documents in {indexed:.0f} s")
    for part, took in found.items():
        print(f"{1000 * took:7.0f} ms {table}{part}")
    slower = slowness()
    assert {part: found[part] for part in opens if found[part] > OPENS_S * slower} == {}
    assert {part: found[part] for part in (*sorts, *filters, *searches) if found[part] > ANSWERS_S * slower} == {}
