"""Policies measured against people: escalated pairs weigh 1, audited ones 1 / probability (check 9)."""

import random
from collections import Counter
from statistics import fmean, stdev
from typing import Any

import pytest

from annotation.quality.policies.reading import read_answers, sampling_weights, truths_of
from annotation.quality.policies.replay import replay_policy
from annotation.quality.policies.report import evaluate_policies
from annotation.quality.policies.rules import PolicyPanel, Rule
from annotation.quality.policies.stored import (
    AnswerGroup,
    CampaignAnswers,
    ReferenceLabels,
    StoredAnswers,
    group_answers,
)
from corpus.collections.task_order import next_place
from corpus.models import Item
from judges.models import Audit, Campaign, Work
from judges.records import Turn
from tests.annotation.quality.policies.policies_scene import pairs_of, scripted_campaign
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_item

YES, NO = Turn(1, ""), Turn(0, "")
FIVE = PolicyPanel(judges=("a", "b", "c", "d", "e"))
ENSEMBLE, SINGLE = Rule("ensemble", majority=4, name="4 of 5"), Rule("single", majority=1, position=0, name="single")


ASKED = {5: 0.05, 3: 0.3, 1: 1.0}
"""By the margin of the votes: 3 to 2 goes to people, surer panels are audited, the surest most rarely."""
World = Counter[tuple[int, int]]


def world(seed: int = 1, pairs: int = 4_000) -> World:
    """How many pairs have this truth and so many votes for yes of five. Surer panels are right more often.

    So who counts people's answers alike counts errors that were looked for harder.
    """
    draw = random.Random(seed)
    found: World = Counter()
    for _ in range(pairs):
        truth = int(draw.random() < 0.4)
        found[truth, sum(draw.random() < (0.75 if truth else 0.3) for _ in range(5))] += 1
    return found


def campaign_of(counts: World, draw: random.Random | None, *, naive: bool = False) -> CampaignAnswers:
    """What a campaign leaves of the world; `draw`: whom the audit draws, else the truth of all is gold."""
    groups = []
    for (truth, yes), pairs in sorted(counts.items()):
        probability, drawn, label = ASKED[abs(2 * yes - 5)], pairs, ReferenceLabels(gold=truth)
        if draw:
            drawn = sum(draw.random() < probability for _ in range(pairs))
            label = ReferenceLabels(people=truth, weight=1.0 if naive else 1 / probability)
        votes = {place: YES if place < yes else NO for place in range(5)}
        truths = Counter({label: drawn, ReferenceLabels(): pairs - drawn})
        groups.append(AnswerGroup({}, votes, {}, pairs, truths))
    return CampaignAnswers(groups)


@pytest.mark.parametrize("rule", [ENSEMBLE, SINGLE], ids=["the policy that escalated", "another policy"])
def test_inverse_probability_estimates_are_unbiased_where_naive_ones_are_not(rule):
    """200 audits of one world: the mean estimate is the truth to within its own error; counted alike it is not."""
    known = world()
    truth = replay_policy(rule, FIVE, campaign_of(known, None)).own.balanced.value
    means = {}
    for naive in (False, True):
        drawn = [campaign_of(known, random.Random(seed), naive=naive) for seed in range(200)]
        values = [replay_policy(rule, FIVE, found, reference="people").own.balanced.value for found in drawn]
        means[naive] = fmean(values)
        error = stdev(values) / 200**0.5
        assert (abs(means[naive] - truth) < 3 * error) is not naive, (means, truth, error)
    assert truth - means[True] > 10 * abs(means[False] - truth)


def test_the_interval_of_a_weighted_recall_covers_the_truth():
    known = world()
    truth = replay_policy(ENSEMBLE, FIVE, campaign_of(known, None)).own.relevant.value
    inside = 0
    for seed in range(200):
        found = replay_policy(ENSEMBLE, FIVE, campaign_of(known, random.Random(seed)), reference="people").own.relevant
        inside += found.low <= truth <= found.high
    assert inside / 200 >= 0.95 - 2.33 * (0.05 * 0.95 / 200) ** 0.5


def test_pairs_that_are_not_settled_yet_are_stood_for_by_their_own_stratum():
    asked = [("r1.m5.y", 0.5, True), ("r1.m5.y", 0.5, False), ("asked split", 1.0, True), ("asked split", 1.0, True)]
    # Of two audits drawn at one half one is settled: it stands for 2 / 0.5 = 4 pairs.
    assert sampling_weights(asked) == [4.0, 0.0, 1.0, 1.0]
    assert sampling_weights([]) == []


# In the database


@pytest.fixture
def campaign(db):
    return scripted_campaign()


def settled(campaign: Campaign, number: int, grades: list[int], reason: str, *, adjudicated: int | None = None) -> Item:
    """People's answers on the pair (numbered from 1), which is settled."""
    pair = pairs_of(campaign.collection)[number - 1]
    item = make_item(
        pair, reason, campaign=campaign.pk, state="settled", overlap=2, taken=2, done=2, place=next_place()
    )
    for place, grade in enumerate(grades):
        make_judgment(pair, make_assessor(campaign.collection, f"person-{place}"), grade, item=item)
    if adjudicated is not None:
        senior = make_assessor(campaign.collection, "senior")
        make_judgment(pair, senior, adjudicated, item=item, step="adjudication")
    return item


def recalls(measured: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return measured["recall_relevant"], measured["recall_not_relevant"]


def audited(campaign: Campaign, number: int, grades: list[int], probability: float) -> None:
    item = settled(campaign, number, grades, "audit")
    label = Work.objects.get(campaign=campaign, pair=item.pair).label
    Audit.objects.create(
        campaign=campaign, pair=item.pair, item=item, stratum="r1.m5.y", probability=probability, label=label
    )


def test_people_weigh_one_where_escalated_and_the_inverse_where_audited(campaign):
    settled(campaign, 2, [1, 1], "audit")
    assert read_answers(campaign).measured("people") == 0, "a pair that an admin handed over is in no sample"
    settled(campaign, 6, [0, 0], "conflict")
    settled(campaign, 8, [1, 0], "disagreement", adjudicated=1)
    audited(campaign, 1, [1, 1], 0.25)
    pairs = pairs_of(campaign.collection)
    make_item(pairs[8], "conflict", campaign=campaign.pk, place=next_place())  # 9 waits for people
    truths = {number: truths_of(campaign)[pairs[number - 1].pk] for number in (1, 6, 8, 9)}
    # 6 stands for the conflict 9, too; 8 has the adjudicator's answer.
    weights = {number: (truth.people, truth.weight) for number, truth in truths.items()}
    assert weights == {1: (1, 4.0), 6: (0, 2.0), 8: (1, 1.0), 9: (None, 0.0)}
    assert truths[9].gold == 1
    assert read_answers(campaign).measured("people") == 3


def test_a_policy_is_measured_against_people_on_the_pairs_it_labels_and_on_all(campaign):
    settled(campaign, 6, [0, 0], "conflict")
    settled(campaign, 8, [1, 1], "disagreement")
    settled(campaign, 9, [1, 1], "conflict")
    audited(campaign, 1, [1, 1], 0.5)
    audited(campaign, 3, [0, 0], 0.25)  # labelled relevant, and is not
    audited(campaign, 4, [0, 0], 0.2)
    report = evaluate_policies(campaign.collection, campaign, reference="people")
    found = {one["name"]: one for one in report["policies"]}
    relevant, other = recalls(found["debate + ensemble, 3 rounds, 3 of 5"]["own"])
    assert (relevant["value"], relevant["n"]) == (1.0, 1)
    assert other["value"] == pytest.approx(5 / (4 + 5)), "pair 3 stands for four, pair 4 for five"
    relevant, other = recalls(found["debate + ensemble, 3 rounds, 3 of 5"]["after"]["people"])
    assert (relevant["value"], relevant["n"]) == (1.0, 3)
    assert other["value"] == pytest.approx((5 + 1) / (4 + 5 + 1))
    relevant, other = recalls(found["single: judge-1"]["own"])  # yes on 1 3 6 8, no on 4 9
    assert relevant["value"] == pytest.approx((2 + 1) / (2 + 1 + 1))
    assert other["value"] == pytest.approx(5 / (4 + 5 + 1))
    assert report["measured"] == 6


def test_people_who_judged_every_pair_are_measured_against_the_reference(campaign):
    for number, gold in enumerate([1, 1, 0, 0, 0, 0, 1, 1, 1, 0], 1):
        settled(campaign, number, [1 - gold] * 2 if number == 4 else [gold] * 2, "disagreement")
    found = {one["name"]: one for one in evaluate_policies(campaign.collection, campaign)["policies"]}
    relevant, other = recalls(found["human"]["after"]["people"])
    assert (relevant["value"], other["value"]) == (1.0, pytest.approx(4 / 5)), "they erred on 4"
    # They got 7 and 8, and were right; 9 and 3 were labelled wrongly.
    relevant, other = recalls(found["debate, 2 rounds"]["after"]["people"])
    assert (relevant["value"], other["value"]) == (pytest.approx(4 / 5), pytest.approx(4 / 5))


def test_where_there_is_neither_gold_nor_people_nothing_is_measured():
    answers = group_answers([StoredAnswers(1, votes={place: YES for place in range(5)})])
    replay = replay_policy(ENSEMBLE, FIVE, answers, reference="none")
    assert replay.own.balanced.value is None and replay.own.balanced.reason == "not measured"
    assert (replay.labelled, replay.escalated) == (1, 0), "what needs no truth is known"
