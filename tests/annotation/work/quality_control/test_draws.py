"""Drawing gold, checks and tests asks the database no more often for many pairs than for few."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.work.quality_control import attention_checks, gold, qualification
from annotation.work.quality_control.matching import PairFeatures, draw_pool
from annotation.work.quality_control.onboarding import PRACTICE_COUNT
from corpus.models import Assessor, Collection, Judgment
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_pair
from tests.judging_scene import escalate

pytestmark = pytest.mark.django_db
FEW, MANY = 10, 50


def make_checks(collection: Collection, count: int, form: str = "own") -> None:
    assert attention_checks.make_checks(collection=collection, count=count, seed=1, by=None, form=form) == count


def make_dream_checks(collection: Collection, count: int) -> None:
    make_checks(collection, count, attention_checks.DREAM)


def make_test(collection: Collection, count: int) -> None:
    qualification.make_test(collection=collection, size=count - PRACTICE_COUNT, seed=1, by=None)


def draw_gold(collection: Collection, count: int) -> None:
    gold.draw(collection=collection, size=count - gold.PRACTICE_COUNT, seed=1, spot=0.1, by=None)


@pytest.mark.parametrize("act", [make_checks, make_dream_checks, make_test, draw_gold])
def test_many_pairs_take_no_more_statements_than_few(act: Callable[[Collection, int], None]) -> None:
    judges, counts = [make_judge("debater-a"), make_judge("debater-b")], []
    for number, count in enumerate((FEW, MANY)):
        collection = make_collection(f"books-{number}")
        campaign = make_campaign(collection, judges, policy="debate")
        for _ in range(3):
            escalate(campaign, make_pair(collection))
        reference = Assessor.objects.create(collection=collection, kind="reference", name="gold")
        pairs = [make_pair(collection) for _ in range(count)]
        Judgment.objects.bulk_create(Judgment(pair=pair, assessor=reference, step="import", grade=1) for pair in pairs)
        with CaptureQueriesContext(connection) as seen:
            act(collection, count)
        counts.append(len(seen))
    assert counts[0] == counts[1], counts


def test_a_pool_of_gold_has_both_labels_and_first_what_was_argued_about() -> None:
    gold = [
        PairFeatures(number, "", relevant=number % 10 == 0, argued={1: 2} if number < 40 else {})
        for number in range(100)
    ]
    pool = draw_pool(gold, 20, seed=1)
    assert {look.pair for look in pool if look.relevant} == set(range(0, 100, 10))
    assert len(pool) == 30 and all(look.argued for look in pool if not look.relevant)
    assert [look.pair for look in draw_pool(gold, 20, seed=2)] != [look.pair for look in pool]
