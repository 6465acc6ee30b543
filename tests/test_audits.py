"""Audits: drawn when a pair is labelled, judged blind, counted apart, estimated by route (MECHANICS M4, SPEC S3)."""

import random
from statistics import NormalDist

import pytest

from annotation import queue
from annotation.agreement.proportions import Stratum, exact, overall, sequence
from annotation.desks import Answer, Desk
from annotation.models import Role
from annotation.trust import audits
from annotation.trust.audits import verdict
from corpus.items import next_place
from corpus.models import Collection, Item, Judgment, Label
from judges import selectors, tallies
from judges.audits import LEAST, Route, chance, probability, route_of
from judges.models import Audit, Campaign
from tests.engine_parts import _standing_worker, collection_of, judge, make_panel, sums_up, worker
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.modelserver.fixtures import LocalModels, _model_server_process, model_server

__all__ = ["_model_server_process", "_standing_worker", "model_server", "worker"]
SURE = Route(1, 5, 1)


# Drawing


def test_a_stratum_is_drawn_at_the_share_asked_for_and_no_less_than_sixty_pairs_are_expected():
    pairs = 1_000_000
    assert probability(0.02, pairs, SURE) == 0.02
    rare = Route(2, 1, 1)
    expected = 10_000 * rare.expected_share
    assert probability(0.02, 10_000, rare) == pytest.approx(LEAST / expected)
    assert probability(0.02, 20, SURE) == 1.0
    assert probability(0.0, 20, SURE) == 0.0


def test_the_draw_is_a_fair_coin_of_seed_and_pair():
    drawn = [chance(7, pair) < 0.1 for pair in range(20_000)]
    assert sum(drawn) == pytest.approx(2_000, abs=3 * (20_000 * 0.09) ** 0.5)
    assert drawn == [chance(7, pair) < 0.1 for pair in range(20_000)]
    assert drawn != [chance(8, pair) < 0.1 for pair in range(20_000)]


def test_a_route_reads_back_from_its_key():
    assert route_of(SURE.key) == SURE
    assert route_of(Route(0, -1, 0).key) == Route(0, -1, 0)
    assert SURE.words == "agreed in round 1, votes 5 apart, relevant"
    with pytest.raises(ValueError, match="not a route"):
        route_of("q1.m5.y")


# Intervals


def test_clopper_and_pearson_as_published():
    low, high = exact(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4439, 0.9748)
    assert exact(0, 10).low == 0 and round(exact(0, 10).high, 4) == 0.3085
    assert exact(0, 0) == (0, 1)


@pytest.mark.slow
def test_the_bound_for_repeated_looks_holds_at_every_look_where_the_exact_one_does_not():
    """Two hundred audits of a route that is 90% right, looked at after every answer, 300 times over."""
    missed = {exact: 0, sequence: 0}
    for seed in range(300):
        draw, right = random.Random(seed), 0
        left = set(missed)
        for n in range(1, 201):
            right += draw.random() < 0.9
            for bound in list(left):
                low, high = bound(right, n)
                if not low <= 0.9 <= high:
                    missed[bound] += 1
                    left.remove(bound)
    assert missed[sequence] <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5
    assert missed[exact] > missed[sequence]


def test_a_route_is_over_or_under_the_limit_only_where_the_bound_is_sure():
    assert [verdict(2, 10), verdict(9, 10), verdict(100, 100)] == ["over", "open", "enough"]
    assert verdict(0, 0) == "open"


def test_the_estimate_over_strata_covers_the_truth():
    """Routes of unlike size and accuracy, sampled at unlike shares: 400 seeded audits."""
    truth = [(8_000, 0.98), (1_500, 0.9), (500, 0.6)]
    accuracy = sum(size * right for size, right in truth) / 10_000
    inside, values = 0, []
    for seed in range(400):
        draw = random.Random(seed)
        strata = [Stratum(size, n := 60, sum(draw.random() < right for _ in range(n))) for size, right in truth]
        value, (low, high) = overall(strata)
        values.append(value)
        inside += low <= accuracy <= high
    assert sum(values) / 400 == pytest.approx(accuracy, abs=0.004), "weighted by size: a plain mean gives 0.83"
    assert inside / 400 >= 0.95 - NormalDist().inv_cdf(0.99) * (0.05 * 0.95 / 400) ** 0.5


def test_without_a_sample_there_is_no_estimate_and_a_perfect_sample_is_not_certainty():
    assert overall([Stratum(100, 0, 0)]) is None
    value, (low, high) = overall([Stratum(1_000, 60, 60), Stratum(50, 0, 0)])
    assert value == high == 1 and 0.9 < low < 0.95


# In the database


def audited(collection: Collection, campaign: Campaign, route: Route, size: int, drawn: int) -> list[Item]:
    """A route of so many labelled pairs, so many of them drawn."""
    tallies.add(campaign.pk, f"route:{route.key}", size)
    tallies.add(campaign.pk, f"labelled:{route.label}", size)
    tallies.add(campaign.pk, "pairs", size)
    tallies.add(campaign.pk, "escalated:audit", drawn)
    items = []
    for _ in range(drawn):
        item = make_item(make_pair(collection), "audit", overlap=2, campaign=campaign.pk, place=next_place())
        values = {"stratum": route.key, "probability": drawn / size, "label": route.label}
        Audit.objects.create(campaign=campaign, pair=item.pair, item=item, **values)
        items.append(item)
    return items


def answer(member, grade):
    """The member judges the next item; its id, or None when nothing is left."""
    member.refresh_from_db()
    desk = Desk.of(member)
    lent = queue.in_transaction(lambda db: queue.claim(db, desk))
    if lent is None:
        return None
    lease = member.assignments.get(pk=lent)
    grade = grade(lease.item) if callable(grade) else grade
    queue.in_transaction(lambda db: queue.submit(db, desk, Answer(lease.item_id, lease.token, grade)))
    return lease.item_id


@pytest.fixture
def books(db):
    return make_collection("books")


@pytest.fixture
def campaign(books):
    return make_campaign(books, [make_judge("a"), make_judge("b")], policy="debate")


def test_audits_are_settled_by_two_and_measured_by_route(books, campaign):
    sure = audited(books, campaign, Route(1, 0, 1), 90, 6)
    audited(books, campaign, Route(2, 0, 0), 10, 2)
    alice, bob = make_member(books, "alice"), make_member(books, "bob", Role.ADJUDICATOR)
    wrong = sure[0].pk

    def truth(item):
        return int(item.audits.get().label == 1 and item.pk != wrong)

    for member in (alice, bob):
        while answer(member, truth):
            pass
    found = audits(books, campaign, tallies.read(campaign.pk))
    first, second = found.routes
    assert (first.population, first.drawn, first.settled, first.right) == (90, 6, 6, 5)
    assert first.accuracy.value == pytest.approx(5 / 6) and first.accuracy.n == 6
    assert (second.drawn, second.right) == (2, 2)
    assert found.overall.value == pytest.approx(0.9 * 5 / 6 + 0.1)
    assert found.population == f"100 pairs that debate labelled in campaign {campaign.pk}"
    assert Label.objects.get(pair=sure[0].pair).grade == 0, "people outrank the policy"
    assert Audit.objects.get(item=wrong).label == 1, "the label before the audit stays"
    assert set(Judgment.objects.values_list("arm", flat=True)) == {"hidden"}


def test_status_counts_audits_apart(books, campaign):
    audited(books, campaign, Route(1, 0, 1), 20, 1)
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    status = selectors.status(books, campaign)
    assert (status["labelled"], status["audits"], status["escalated"], status["open"]) == (20, 1, 0, 0)
    assert status["escalations"] == {"audit": 1} and sums_up(status)
    for member in (alice, bob):
        assert answer(member, 1)
    after = selectors.status(books, campaign)
    assert (after["settled"], after["open"], after["audits"]) == (0, 0, 1) and sums_up(after)
    assert tallies.read(campaign.pk)["audited"] == 1


def test_two_who_differ_on_an_audit_leave_it_to_an_adjudicator(books, campaign):
    (item,) = audited(books, campaign, Route(1, 0, 1), 20, 1)
    for name, grade in (("alice", 1), ("bob", 0)):
        answer(make_member(books, name), grade)
    found = audits(books, campaign, tallies.read(campaign.pk))
    assert (found.conflicts, found.settled) == (1, 0)
    assert found.overall.value is None and "not measured" in found.overall.reason
    item.refresh_from_db()
    assert item.state == "conflict"


def test_nothing_labelled_is_nothing_measured(books, campaign):
    assert audits(books, campaign, {}) is None


# Through the engine


def test_the_engine_draws_audits_with_the_labels(worker: object, model_server: LocalModels) -> None:
    collection = collection_of(12)
    Collection.objects.filter(pk=collection.pk).update(audit=0.02)
    make_panel(model_server, votes=("yes", "yes", "yes", "yes", "no"))
    status = judge(check=True).json
    assert (status["labelled"], status["escalated"], status["audits"]) == (12, 0, 12), "few pairs: all are drawn"
    assert status["escalations"] == {"audit": 12} and sums_up(status)
    assert Item.objects.filter(reason="audit", overlap=2, state="open").count() == 12
    audit = Audit.objects.first()
    assert (audit.stratum, audit.label, audit.probability) == ("r1.m3.y", 1, 1.0)
    assert tallies.read(status["campaign"])["route:r1.m3.y"] == 12

    again = judge("--again", check=True).json
    assert again["audits"] == 12
    assert Item.objects.filter(reason="audit").count() == 12, "the same pairs are drawn: people's answers serve again"
    assert Audit.objects.filter(campaign=again["campaign"]).count() == 12


def test_an_audit_of_nought_draws_none_and_pairs_that_people_met_belong_to_no_route(
    worker: object, model_server: LocalModels
) -> None:
    collection = collection_of(4)
    make_panel(model_server)
    assert judge(check=True).json["audits"] == 0
    Collection.objects.filter(pk=collection.pk).update(audit=0.5)
    make_item(collection.pair_set.order_by("pk").first(), place=next_place())
    status = judge("--again", check=True).json
    assert (status["labelled"], status["audits"]) == (4, 3)
    assert tallies.read(status["campaign"])["route:r1.m5.y"] == 3
