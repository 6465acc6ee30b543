"""Audits: drawn when a pair is labelled, judged blind, counted apart, estimated by route."""

import random
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from statistics import NormalDist, mean, stdev

import pytest
from django.db import connection, transaction
from django.test import Client

from annotation.agreement.proportions import (
    Stratum,
    clopper_pearson,
    confidence_sequence,
    stratified_share,
    weighted_sequence,
)
from annotation.models import Role
from annotation.quality.label_quality.audits import measure_audits, route_verdict
from annotation.quality.policies.reading import truths_of
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from corpus.collections.task_order import next_place
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, Item, Judgment, Label
from judges.campaigns import selectors
from judges.costs import counters
from judges.domain.audits import Route, allocate_sample, audit_sample_size, route_of, uniform_draw
from judges.engine import audit_sampling
from judges.engine.route_breakers import AnsweredAudits
from judges.models import Audit, Campaign, Work
from tests.engine_parts import collection_of, judge, make_panel, scene, sums_up
from tests.evidence import make_campaign, make_judge
from tests.factories import client_of, make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.modelserver.fixtures import LocalModels
from tests.reading import flat

SURE = Route(1, 5, 1)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


# Drawing


def test_a_sample_has_its_size_in_all_and_is_spread_over_routes_by_size_and_risk():
    assert audit_sample_size(0.02, 342) == 30 and audit_sample_size(0.02, 260) == 30
    assert audit_sample_size(0.02, 12) == 12 and audit_sample_size(0.02, 0) == 0
    assert audit_sample_size(0.02, 10_000) == 200
    assert audit_sample_size(0.0, 10_000) == 0
    assert audit_sample_size(0.02, 900, others=100) == 27, "another campaign's labels take their part"
    sure, late, split = Route(1, 5, 1), Route(2, 5, 1), Route(0, 1, 0)
    sizes = {sure.key: 300, late.key: 300, split.key: 300}
    found = allocate_sample(sizes, 60)
    assert sum(found.values()) == 60
    assert found[sure.key] < found[late.key] < found[split.key], "the more disputed, the more"
    by_size = allocate_sample({"r1.m5.y": 900, "r1.m5.n": 100}, 50)
    assert by_size == {"r1.m5.y": 45, "r1.m5.n": 5}
    assert allocate_sample({"r1.m5.y": 5, "r0.m0.n": 2}, 30) == {"r1.m5.y": 5, "r0.m0.n": 2}, "no more than there are"
    assert allocate_sample(sizes, 10, drawn={sure.key: 12}) == {sure.key: 12, late.key: 0, split.key: 0}
    rare = allocate_sample({"r1.m5.y": 10_000, "r3.m1.n": 1}, 30)
    assert rare["r3.m1.n"] == 1, "each route has one, where there are enough"


def test_the_draw_is_a_fair_coin_of_seed_and_pair_and_a_route_reads_back_from_its_key():
    drawn = [uniform_draw(7, pair) < 0.1 for pair in range(20_000)]
    assert sum(drawn) == pytest.approx(2_000, abs=3 * (20_000 * 0.09) ** 0.5)
    assert drawn == [uniform_draw(7, pair) < 0.1 for pair in range(20_000)]
    assert drawn != [uniform_draw(8, pair) < 0.1 for pair in range(20_000)]
    assert route_of(SURE.key) == SURE
    assert route_of(Route(0, -1, 0).key) == Route(0, -1, 0)
    assert SURE.describe() == "Round 1 · votes 5 apart · relevant", "the size of the panel is not known"
    with pytest.raises(ValueError, match="is not a route"):
        route_of("q1.m5.y")


# Intervals


def test_clopper_and_pearson_as_published_and_a_route_over_the_limit_only_where_the_bound_is_sure():
    low, high = clopper_pearson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4439, 0.9748)
    assert clopper_pearson(0, 10).low == 0 and round(clopper_pearson(0, 10).high, 4) == 0.3085
    assert clopper_pearson(0, 0) == (0, 1)

    def said(right: int, n: int) -> str:
        return route_verdict(over=AnsweredAudits(n, n, right).over, low=confidence_sequence(right, n).low)

    assert [said(2, 10), said(9, 10), said(100, 100), said(0, 0)] == ["over", "open", "enough", "open"]


def test_the_bound_for_repeated_looks_holds_at_every_look_where_the_exact_one_does_not():
    """A route that is 90% right, looked at after each of 200 answers, 300 times over."""

    def missed(bound):
        bound, missing = cache(bound), 0
        for seed in range(300):
            draw = random.Random(seed)
            rights = accumulate(draw.random() < 0.9 for _ in range(200))
            looks = (bound(right, n) for n, right in enumerate(rights, 1))
            missing += any(not low <= 0.9 <= high for low, high in looks)
        return missing

    most = 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5
    assert missed(confidence_sequence) <= most < missed(clopper_pearson)


def test_a_route_is_over_the_limit_by_all_its_parts_weighted_by_size():
    """A part of 100 pairs with 30 audits must not speak for one of 10,000 with 30."""
    bad, good = AnsweredAudits(30, 30, 15, size=100), AnsweredAudits(30, 30, 30, size=10_000)
    assert AnsweredAudits.together({0: bad}).over and not AnsweredAudits.together({1: good}).over
    assert not AnsweredAudits.together({0: bad, 1: good}).over
    assert AnsweredAudits.together({0: bad, 1: AnsweredAudits(30, 30, 15, size=10_000)}).over
    low, high = weighted_sequence([Stratum(100, 30, 15), Stratum(10_000, 30, 30)])
    assert low <= (50 + 10_000) / 10_100 <= high and low > confidence_sequence(45, 60).low
    assert weighted_sequence([Stratum(50, 30, 15)]) == confidence_sequence(15, 30) and weighted_sequence([]) == (0, 1)


def test_the_estimate_over_strata_covers_the_truth_and_a_perfect_sample_is_not_certainty():
    """Routes of unlike size and accuracy, sampled at unlike shares: 400 seeded audits."""
    truth = [(8_000, 0.98), (1_500, 0.9), (500, 0.6)]
    accuracy = sum(size * right for size, right in truth) / 10_000
    inside, values = 0, []
    for seed in range(400):
        draw = random.Random(seed)
        strata = [Stratum(size, n := 60, sum(draw.random() < right for _ in range(n))) for size, right in truth]
        value, (low, high) = stratified_share(strata)
        values.append(value)
        inside += low <= accuracy <= high
    assert sum(values) / 400 == pytest.approx(accuracy, abs=0.004), "weighted by size: a plain mean gives 0.83"
    assert inside / 400 >= 0.95 - NormalDist().inv_cdf(0.99) * (0.05 * 0.95 / 400) ** 0.5
    assert stratified_share([Stratum(100, 0, 0)]) is None
    value, (low, high) = stratified_share([Stratum(1_000, 60, 60), Stratum(50, 0, 0)])
    assert value == high == 1 and 0.9 < low < 0.95


# In the database


def audited(collection: Collection, campaign: Campaign, route: Route, size: int, drawn: int) -> list[Item]:
    """A route of so many labelled pairs, so many of them drawn."""
    counters.add(campaign.pk, f"route:{route.key}", size)
    counters.add(campaign.pk, f"labelled:{route.label}", size)
    counters.add(campaign.pk, "pairs", size)
    counters.add(campaign.pk, "escalated:audit", drawn)
    for _ in range(drawn):
        draw(campaign, Work(pair=make_pair(collection), stratum=route.key, label=route.label), drawn / size)
    return list(Item.objects.filter(audits__stratum=route.key).order_by("pk"))


def charlie(books: Collection) -> Client:
    """The admin's browser."""
    return client_of(make_member(books, "charlie", Role.ADMIN))


def draw(campaign: Campaign, work: Work, probability: float) -> None:
    """The pair of a label is drawn for people, with this chance."""
    item = make_item(work.pair, "audit", overlap=2, campaign=campaign.pk, place=next_place())
    values = {"stratum": work.stratum, "probability": probability, "label": work.label}
    Audit.objects.create(campaign=campaign, pair=work.pair, item=item, **values)


def answer(member, grade):
    """The member judges the next item; its id, or None when nothing is left."""
    member.refresh_from_db()
    desk = AnnotatorContext.of(member)
    lent = assignment.in_transaction(lambda db: submitting.claim(db, desk))
    if lent is None:
        return None
    lease = member.assignments.get(pk=lent)
    grade = grade(lease.item) if callable(grade) else grade
    assignment.in_transaction(
        lambda db: submitting.submit(db, desk, SubmittedAnswer(lease.item_id, lease.token, grade))
    )
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
    found = measure_audits(books, campaign, counters.read(campaign.pk))
    first, second = found.routes
    assert (first.population, first.drawn, first.settled, first.right) == (90, 6, 6, 5)
    assert first.accuracy.value == pytest.approx(5 / 6) and first.accuracy.n == 6
    assert (second.drawn, second.right) == (2, 2)
    assert found.overall.value == pytest.approx(0.9 * 5 / 6 + 0.1)
    assert found.population.startswith("100 pairs") and found.population.endswith(f"campaign {campaign.number}")
    assert Label.objects.get(pair=sure[0].pair).grade == 0, "people outrank the policy"
    assert Audit.objects.get(item=wrong).label == 1, "the label before the audit stays"
    assert set(Judgment.objects.values_list("arm", flat=True)) == {"hidden"}


def test_status_counts_audits_apart(books, campaign):
    audited(books, campaign, Route(1, 0, 1), 20, 1)
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    status = selectors.campaign_status(books, campaign)
    assert (status["labelled"], status["audits"], status["escalated"], status["open"]) == (20, 1, 0, 0)
    assert status["escalations"] == {"audit": 1} and sums_up(status)
    for member in (alice, bob):
        assert answer(member, 1)
    after = selectors.campaign_status(books, campaign)
    assert (after["settled"], after["open"], after["audits"]) == (0, 0, 1) and sums_up(after)
    assert counters.read(campaign.pk)["audited"] == 1


def test_two_who_differ_on_an_audit_leave_it_to_an_adjudicator(books, campaign):
    assert measure_audits(books, campaign, {}) is None, "nothing labelled is nothing measured"
    (item,) = audited(books, campaign, Route(1, 0, 1), 20, 1)
    for name, grade in (("alice", 1), ("bob", 0)):
        answer(make_member(books, name), grade)
    found = measure_audits(books, campaign, counters.read(campaign.pk))
    assert (found.conflicts, found.settled) == (1, 0)
    assert found.overall.value is None and "not measured" in found.overall.reason
    item.refresh_from_db()
    assert item.state == "conflict"


# Through the engine


def test_the_engine_draws_audits_with_the_labels(models: LocalModels) -> None:
    collection = collection_of(12)
    Collection.objects.filter(pk=collection.pk).update(audit=0.02)
    make_panel(models, votes=("yes", "yes", "yes", "yes", "no"))
    status = judge(check=True).json
    assert (status["labelled"], status["escalated"], status["audits"]) == (12, 0, 12), "few pairs: all are drawn"
    assert status["escalations"] == {"audit": 12} and sums_up(status)
    assert Item.objects.filter(reason="audit", overlap=2, state="open").count() == 12
    audit = Audit.objects.first()
    assert (audit.stratum, audit.label, audit.probability) == ("r1.m3.y", 1, 1.0)
    assert counters.read(Campaign.objects.get(number=status["campaign"]).pk)["route:r1.m3.y"] == 12

    again = judge("--again", check=True).json
    assert again["audits"] == 12
    assert Item.objects.filter(reason="audit").count() == 12, "the same pairs are drawn: people's answers serve again"
    assert Audit.objects.filter(campaign__number=again["campaign"]).count() == 12


def test_an_audit_of_nought_draws_none_and_pairs_that_people_met_belong_to_no_route(models: LocalModels) -> None:
    collection = scene(models, 4)
    assert judge(check=True).json["audits"] == 0
    Collection.objects.filter(pk=collection.pk).update(audit=0.5)
    make_item(collection.pair_set.order_by("pk").first(), place=next_place())
    status = judge("--again", check=True).json
    assert (status["labelled"], status["audits"]) == (4, 3)
    assert counters.read(Campaign.objects.get(number=status["campaign"]).pk)["route:r1.m5.y"] == 3


# The sample filled up when the campaign ends, and more on request


def labelled(collection: Collection, campaign: Campaign, route: Route, size: int) -> None:
    """Pairs that the campaign labelled by a route, none of them drawn yet."""
    counters.add(campaign.pk, f"route:{route.key}", size)
    counters.add(campaign.pk, f"labelled:{route.label}", size)
    query = make_query(collection)
    for _ in range(size):
        pair = make_pair(collection, query, make_document(collection))
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=route.label, stratum=route.key)


def fill_up(campaign: Campaign) -> int:
    return audit_sampling.top_up_sample(connection.connection, campaign=campaign.pk, collection=campaign.collection_id)


@pytest.fixture
def demo_like(books, campaign):
    """342 labels by six routes, as in the demo."""
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    for route, size in (
        (Route(1, 5, 0), 120), (Route(1, 5, 1), 100), (Route(1, 3, 0), 60), (Route(2, 5, 1), 40), (Route(2, 1, 0), 20),
        (Route(2, 3, 1), 2),
    ):  # fmt: skip
        labelled(books, campaign, route, size)
    return campaign


def test_the_sample_of_a_campaign_has_its_size_in_all_and_not_in_each_route(demo_like):
    assert fill_up(demo_like) == 30
    assert Audit.objects.count() == Item.objects.filter(reason="audit", overlap=2, state="open").count() == 30
    assert set(Audit.objects.values_list("stratum", flat=True)) == {
        "r1.m5.n", "r1.m5.y", "r1.m3.n", "r2.m5.y", "r2.m1.n", "r2.m3.y",
    }  # fmt: skip
    for key, n, size in (("r1.m5.n", None, 120), ("r2.m3.y", None, 2)):
        n = Audit.objects.filter(stratum=key).count()
        assert set(Audit.objects.filter(stratum=key).values_list("probability", flat=True)) == {n / size}
    assert counters.read(demo_like.pk)["escalated:audit"] == 30
    assert fill_up(demo_like) == 0, "the same again changes nothing"
    assert Audit.objects.count() == 30


def joined(books: Collection, campaign: Campaign, accuracies: list[float], sizes: list[int]) -> list[Work]:
    """Parts of a campaign, each labelled after the end of the one before; the pairs whose label is right."""
    right = []
    for part, (size, share) in enumerate(zip(sizes, accuracies, strict=True)):
        before = set(Work.objects.values_list("pk", flat=True))
        labelled(books, campaign, SURE, size)
        fresh = Work.objects.exclude(pk__in=before).order_by("pk")
        fresh.update(ended_at=EPOCH + timedelta(days=part))
        right += fresh[: round(size * share)]
    return right


def end_part(campaign: Campaign, part: int, share: float) -> int:
    """As an engine does: pairs are drawn with their labels, and the sample is filled up when the campaign ends."""
    Work.objects.filter(campaign=campaign).update(state="pending")
    Work.objects.filter(campaign=campaign, ended_at__lte=EPOCH + timedelta(days=part)).update(state="labelled")
    works = Work.objects.filter(campaign=campaign, ended_at=EPOCH + timedelta(days=part)).select_related("pair")
    for work in works:
        if uniform_draw(campaign.collection.seed, work.pair_id) < share:
            draw(campaign, work, share)
    filled = fill_up(campaign)
    ends = [EPOCH + timedelta(days=one, hours=12) for one in range(part + 1)]
    Campaign.objects.filter(pk=campaign.pk).update(sampled_at=ends)
    return filled


def answer_all(right: list[Work], assessor: Assessor) -> None:
    """People find the pairs of `right` as they were labelled, and the others otherwise."""
    known = {work.pair_id for work in right}
    drawn = Audit.objects.select_related("item")
    grades = [(one, one.label if one.pair_id in known else 1 - one.label) for one in drawn]
    values = {"assessor": assessor, "guideline": 0, "step": "final"}
    Judgment.objects.bulk_create(
        Judgment(item=one.item, pair_id=one.pair_id, grade=grade, **values) for one, grade in grades
    )
    Item.objects.filter(reason="audit").update(state="settled", done=2, taken=2)


@pytest.mark.slow
def test_pairs_that_join_a_campaign_after_its_end_are_sampled_apart_and_the_estimate_has_no_bias(books, campaign):
    """`judge COLLECTION --limit 60`, then `judge COLLECTION`: the later pairs are right more often than the earlier.

    They came into the sample by 2% and the earlier ones by a half, and each counted the same: about 57% for 87.5%.
    """
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    sizes, shares = [60, 240], [0.5, 0.96875]
    right = joined(books, campaign, shares, sizes)
    truth = len(right) / sum(sizes)
    assessor = make_member(books, "alice").assessor
    values, weighted, samples = [], [], []
    for seed in range(50):
        Collection.objects.filter(pk=books.pk).update(seed=seed)
        with transaction.atomic():
            fresh = Campaign.objects.select_related("collection").get(pk=campaign.pk)
            for part in range(2):
                end_part(fresh, part, 0.02)
            answer_all(right, assessor)
            found = measure_audits(fresh.collection, fresh, counters.read(campaign.pk))
            assert found is not None and found.covered == pytest.approx(1)
            values.append(found.overall.value)
            assert found.routes[0].accuracy.value == pytest.approx(found.overall.value)
            people = [one for one in truths_of(fresh).values() if one.weight]
            weighted.append(sum(one.weight for one in people if one.people == 1) / sum(one.weight for one in people))
            samples.append(found.drawn)
            transaction.set_rollback(True)
    assert max(samples) <= 60, "2% of each part, and its share of the least 30"
    error = 4 * stdev(values) / len(values) ** 0.5
    assert error < 0.02 and mean(values) == pytest.approx(truth, abs=error), "no bias, and so for a replayed policy"
    assert mean(weighted) == pytest.approx(truth, abs=error)


def test_every_audited_pair_has_the_probability_of_its_own_part(books, campaign):
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    joined(books, campaign, [1, 1, 1], [60, 240, 3])
    assert [end_part(campaign, part, 0) for part in range(3)] == [30, 24, 1]
    for part, (n, size) in enumerate([(30, 60), (24, 240), (1, 3)]):
        pairs = Work.objects.filter(ended_at=EPOCH + timedelta(days=part)).values("pair")
        known = Audit.objects.filter(pair__in=pairs)
        assert known.count() == n and set(known.values_list("probability", flat=True)) == {n / size}
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    campaign.refresh_from_db()
    assert audit_sampling.draw_more(campaign=campaign, up_to=90, route=SURE.key) == 35
    assert audit_sampling.draw_more(campaign=campaign, up_to=90, route=SURE.key) == 0, "the same again changes nothing"
    weight = sum(1 / one for one in Audit.objects.values_list("probability", flat=True))
    assert weight == pytest.approx(303), "the sample stands for all labelled pairs, whatever was drawn of each part"


def test_a_share_lowered_while_the_campaign_ran_is_no_second_probability(books, campaign):
    """Pairs labelled before were drawn by 20%, those after by 2%: all are in the sample up to one number."""
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    labelled(books, campaign, SURE, 400)
    works = list(Work.objects.order_by("pk").select_related("pair"))
    early = set()
    for place, work in enumerate(works):
        if uniform_draw(books.seed, work.pair_id) < (0.2 if place < 200 else 0.02):
            draw(campaign, work, 1)
            early.add(work.pair_id)
    fill_up(campaign)
    drawn = set(Audit.objects.values_list("pair", flat=True))
    by_number = sorted((work.pair_id for work in works), key=lambda pair: uniform_draw(books.seed, pair))
    assert drawn == set(by_number[: len(drawn)]), "those with the smallest numbers, early or late"
    assert early <= drawn and len(drawn) >= 30, "what was drawn with the label is part of the sample"
    assert set(Audit.objects.values_list("probability", flat=True)) == {len(drawn) / 400}


def test_pairs_that_people_met_for_another_reason_are_not_drawn(books, campaign):
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    labelled(books, campaign, SURE, 40)
    met = list(Work.objects.order_by("pk")[:20])
    for work in met:
        make_item(work.pair, "disagreement")
    fill_up(campaign)
    assert Audit.objects.count() == 20
    assert not Audit.objects.filter(pair__in=[work.pair_id for work in met]).exists()


@pytest.mark.slow
def test_the_draw_of_a_route_is_fair(books, campaign):
    """Every pair of a route is in the sample equally often, over many seeds: as the campaign's end draws it."""
    size, n, times = 50, 10, 400
    labelled(books, campaign, SURE, size)
    hits = dict.fromkeys(Work.objects.values_list("pair", flat=True), 0)
    for seed in range(times):
        Collection.objects.filter(pk=books.pk).update(seed=seed)
        with transaction.atomic():
            assert audit_sampling._draw_pairs(connection.connection, campaign.pk, {f"{SURE.key}/0": n}) == n
            for pair in Audit.objects.values_list("pair", flat=True):
                hits[pair] += 1
            transaction.set_rollback(True)
    expected = times * n / size
    chi = sum((hit - expected) ** 2 / expected / (1 - n / size) for hit in hits.values())
    assert sum(hits.values()) == times * n and chi < 90, "chi-square with 49 degrees: 1 in 3,000 is above 85"


def test_more_are_drawn_only_once_the_campaign_has_ended(books, campaign):
    """What was drawn before the end stayed in the sample, while pairs labelled later came in by a smaller chance."""
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    labelled(books, campaign, SURE, 60)
    client = charlie(books)
    address = f"/c/books/audits/{campaign.number}/draw/"
    for state in ("running", "paused", "budget"):
        Campaign.objects.filter(pk=campaign.pk).update(state=state)
        campaign.refresh_from_db()
        with pytest.raises(BadInput, match="campaign has ended"):
            audit_sampling.draw_more(campaign=campaign, up_to=40)
        for form in ({"up_to": 40}, {"up_to": 40, "route": SURE.key}):
            assert client.post(address, form, follow=True).status_code == 200 and Audit.objects.count() == 0
        page = flat(client.get("/c/books/quality/").text)
        assert page.count(' disabled aria-describedby="not-yet"') == page.count("more audits</button>") == 2
    stale = Campaign.objects.get(pk=campaign.pk)
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    assert audit_sampling.draw_more(campaign=stale, up_to=40) == 40, "as it is now, not as the caller read it"
    assert "not-yet" not in client.get("/c/books/quality/").text
    Campaign.objects.filter(pk=campaign.pk).update(state="cancelled")
    client.post(address, {"up_to": 50})
    assert Audit.objects.count() == 50


def test_the_page_says_which_interval_the_sample_gives_and_draws_more_with_a_click(books, demo_like):
    fill_up(demo_like)
    Campaign.objects.filter(pk=demo_like.pk).update(state="finished")
    client = charlie(books)
    page = client.get("/c/books/quality/")
    found = page.context["audits"]
    assert found.drawn == 30 and found.half > 0.05
    assert f"{found.more} more audits would" in page.text
    sure = next(route for route in found.routes if route.key == "r1.m5.n")
    assert sure.half == pytest.approx(width(sure.drawn), abs=1e-9)
    assert width(sure.enough) <= 0.05 < width(sure.enough - 1) or sure.enough == sure.population
    form = {"route": sure.key, "up_to": sure.drawn + 5}
    for _twice in range(2):
        assert client.post(f"/c/books/audits/{demo_like.number}/draw/", form).status_code == 302
    assert Audit.objects.filter(stratum=sure.key).count() == sure.drawn + 5, "pressed twice it is the same"
    assert Audit.objects.count() == 35
    client.post(f"/c/books/audits/{demo_like.number}/draw/", {"up_to": found.enough})
    after = client.get("/c/books/quality/").context["audits"]
    assert after.drawn == found.enough and after.more == 0 and after.half <= 0.05
    assert Item.objects.filter(reason="audit", state="open").count() == after.drawn
    assert client.post(f"/c/books/audits/{demo_like.number}/draw/", {"up_to": "x"}).status_code == 404
    client.post(f"/c/books/audits/{demo_like.number}/draw/", {"up_to": "9999"})
    assert Audit.objects.count() == 342, "all there are"


def test_a_button_to_draw_more_draws_what_it_says(books, campaign):
    """People met most of the pairs since: the button offered them again and again, and nothing came."""
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    labelled(books, campaign, SURE, 60)
    labelled(books, campaign, Route(2, 3, 0), 12)
    fill_up(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    drawn = set(Audit.objects.values_list("pair", flat=True))
    met = [work.pair for work in Work.objects.exclude(pair__in=drawn).select_related("pair").order_by("-pk")[:37]]
    for pair in [*met, Audit.objects.filter(stratum=SURE.key).order_by("pk")[0].pair]:
        make_item(pair, "disagreement", place=next_place())
    client = charlie(books)
    address = f"/c/books/audits/{campaign.number}/draw/"
    for _press in range(20):
        page = client.get("/c/books/quality/")
        found = page.context["audits"]
        wanted = [found.more, *(one.more for one in found.routes)]
        assert page.text.count("more audits</button>") == sum(one > 1 for one in wanted)
        assert page.text.count("more audit</button>") == wanted.count(1)
        forms = [(one.more, {"route": one.key, "up_to": one.enough}) for one in found.routes if one.more]
        forms += [(found.more, {"up_to": found.enough})] if found.more else []
        if not forms:
            break
        before = Audit.objects.count()
        more, form = forms[0]
        client.post(address, form)
        assert Audit.objects.count() == before + more, form
        client.post(address, form)
        assert Audit.objects.count() == before + more, "pressed twice it is the same"
    assert not found.more and found.drawn == 72 - 37 and found.half > 0.05
    assert "more audits would" not in page.text and "audits needed" not in page.text


def width(n: int) -> float:
    """Half of Clopper and Pearson's interval where 95% of n are right."""
    low, high = clopper_pearson(0.95 * n, n)
    return (high - low) / 2
