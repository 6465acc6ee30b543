"""Attention checks cannot be told from ordinary items by what an annotator's page shows (issue check 7; DREAM F.2)."""

import re
from random import Random
from time import perf_counter

import numpy as np
import pytest
from django.db import connection, transaction
from django.test import Client

from annotation.models import Assignment
from annotation.quality_control import attention_checks
from corpus.models import Assessor, Item, Judgment
from tests.annotation.quality_control.telling import auc_interval, told_apart
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.judging_scene import ARGUMENT, TEXT, debating_campaign, store_debate

ITEMS = 400
WORDS = TEXT.split()
pytestmark = pytest.mark.django_db


def some_words(chance: Random, low: int, high: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(low, high)))


def make_pairs(collection, chance: Random, count: int):
    """Pairs of documents, queries and debates of every length."""
    campaign = debating_campaign(collection)
    for _ in range(count):
        document = make_document(collection, f"{TEXT} {some_words(chance, 5, 300)}", title=some_words(chance, 1, 6))
        query = make_query(
            collection,
            some_words(chance, 3, 15),
            answers=[some_words(chance, 1, 9) for _ in range(chance.randint(1, 3))],
        )
        pair = make_pair(collection, query, document)
        turns = []
        for *said, reason, quotes in ARGUMENT:
            chosen = quotes[: chance.randint(1, len(quotes))]
            turns.append((*said, f"{reason} {some_words(chance, 0, 60)}", chosen))
        store_debate(campaign, pair, turns)
        yield campaign, pair


def number_from(first: int) -> None:
    """Number everything that places are drawn by from here on, so that a seed gives the same walk in every run."""
    with connection.cursor() as cursor:
        for table in ("annotation_membership", "annotation_assignment", "corpus_item", "corpus_pair"):
            cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH {first}")
        cursor.execute(f"ALTER SEQUENCE corpus_item_place RESTART WITH {first}")


def make_scene(seed: int):
    """A campaign that escalated everything; a random tenth of the pairs is gold and waits for nobody."""
    number_from(1_000_000)
    chance = Random(seed)
    collection = make_collection("books", checks=0.1, batch=20, order="random", seed=seed)
    reference = Assessor.objects.create(collection=collection, kind="reference", name="gold")
    for number, (campaign, pair) in enumerate(make_pairs(collection, chance, ITEMS + 80)):
        if number % 7 == 3:
            Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=chance.randint(0, 1))
        else:
            Item.objects.create(
                collection=collection, pair=pair, campaign=campaign.pk, reason="disagreement",
                priority=chance.random(), place=number,
            )  # fmt: skip
    assert attention_checks.make_checks(collection=collection, count=60, seed=seed, by=None) == 60
    with connection.cursor() as cursor:  # as autovacuum does: else plans are those of empty tables
        cursor.execute("ANALYZE corpus_item, corpus_pair, corpus_judgment, annotation_assignment, judges_attempt")
    return collection


def features(page: str, order: int, seconds: float) -> list[float]:
    """Whatever of a page a careful annotator, or a program, could count or measure."""
    desk = page[page.index('id="desk"') :]
    debate = desk[desk.index('id="debate"') :]
    document = desk[desk.index('class="document') : desk.index('id="debate"')]
    why = re.search(r'class="why">(.*?)</p>', desk, re.S)[1]
    turns = [len(turn) for turn in debate.split('class="turn')[1:]]
    return [
        float(re.search(r'data-item="(\d+)"', desk)[1]),
        float(re.search(r'data-seconds="(-?\d+)"', desk)[1]),
        len(desk), len(debate), len(document), len(why), sum(map(ord, why)), max(turns), min(turns), len(turns),
        desk.count("<mark"), desk.count("<li"), debate.count("not in the document"), desk.count("class="),
        order, order % 10, order % 20, seconds,
    ]  # fmt: skip


def walk(collection, planted: bool = False):
    """One annotator through 400 items: features of each page, and which were checks."""
    make_member(collection, "alice")
    client = Client()
    client.login(username="alice", password="alice-password")
    if planted:
        plant(collection)
    rows, truth = [], []
    before = perf_counter()
    page = client.post("/c/books/judge/next/", headers={"HX-Request": "true"}).text
    for order in range(ITEMS):
        seconds = perf_counter() - before
        lease = Assignment.objects.select_related("item").get(membership__user__username="alice", state="open")
        rows.append(features(page, order, seconds))
        truth.append(lease.item.reason == "check")
        answer = {
            "item": re.search(r'data-item="(\d+)"', page)[1],
            "token": lease.token,
            "grade": right(lease),
        }
        before = perf_counter()
        page = client.post("/c/books/judge/submit/", answer, headers={"HX-Request": "true"}).text
    return np.array(rows), np.array(truth)


def right(lease: Assignment) -> int:
    known = Judgment.objects.filter(pair=lease.item.pair_id, assessor__kind="reference").first()
    return known.grade if known else 1


def plant(collection) -> None:
    """Make it easy: checks show the first round of their debate alone."""
    for item in Item.objects.filter(collection=collection, reason="check").select_related("pair"):
        turns = item.pair.attempts.filter(round=1, role__in=("for", "against")).order_by("-role")
        item.turns = [
            {
                "side": t.role,
                "round": 1,
                "couple": t.agent_pair,
                "verdict": t.verdict,
                "reason": t.reason,
                "quotes": t.quotes,
            }
            for t in turns
        ]
        item.save(update_fields=["turns"])


@pytest.mark.weekly
def test_a_classifier_cannot_tell_checks_from_ordinary_items():
    """Four walks of 400 items, and the low end of Student's interval of their mean AUC: t(0.975, 3 degrees) = 3.182.

    One walk says too little: what is drawn at random differs by chance between 40 checks and 360 others, and over ten
    seeds the AUC lay from 0.37 to 0.58 (mean 0.48), wider than DeLong's interval of one walk knows.
    """
    found = []
    for seed in (5, 6, 7, 8):
        with transaction.atomic():
            rows, truth = walk(make_scene(seed))
            assert 25 <= truth.sum() <= 55 and len(truth) == ITEMS
            told = told_apart(rows, truth, seed=seed)
            assert told is not None
            found.append(told.auc)
            transaction.set_rollback(True)
    spread = max(np.std(found, ddof=1), 0.06)  # over the ten seeds: four that happen to lie close know no better
    assert np.mean(found) - 3.182 * spread / len(found) ** 0.5 <= 0.5, found
    assert np.mean(found) < 0.6, found


@pytest.mark.slow
def test_the_same_classifier_tells_them_apart_where_a_difference_is_planted():
    rows, truth = walk(make_scene(5), planted=True)
    told = told_apart(rows, truth, seed=5)
    assert told is not None
    assert told.low > 0.9, told
    assert told.apart


def test_the_interval_of_the_auc_is_delongs():
    """By hand: positives 3, 2, 1 against negatives 2, 0 win 1 + 1, 0.5 + 1, 0 + 1 of 2 each: AUC 4.5 / 6 = 0.75.

    Means by positive 1, 0.75, 0.5 (variance 1/16), by negative 0.5, 1 (variance 1/8): 1/48 + 1/16 = 1/12.
    """
    low, value, high = auc_interval(np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.0]))
    assert value == 0.75
    assert low == pytest.approx(0.75 - 1.959964 * (1 / 12) ** 0.5)
    assert high == 1.0


def test_too_few_checks_say_nothing():
    assert told_apart(np.zeros((100, 2)), np.arange(100) < 9) is None
