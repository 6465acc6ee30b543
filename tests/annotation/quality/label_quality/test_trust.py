"""What can be said about trust: kappas by population, people, agreement over time, costs, decisions."""

from datetime import UTC, datetime

import pytest

from annotation.agreement.grade_matrix import pairs_where
from annotation.models import Assignment, Role, StoredResult
from annotation.quality.label_quality import services, statistics
from annotation.quality.label_quality.audits import measure_audits
from annotation.quality.label_quality.costs import campaign_costs
from annotation.quality.label_quality.statistics import cached_statistics
from annotation.tasks import compute_statistics
from corpus.collections.task_order import next_place
from corpus.models import Collection, Item
from judges.campaigns import selectors
from judges.costs import counters
from judges.domain.audits import Route, route_of
from judges.models import Audit, Work
from tests.evidence import make_assessor, make_attempt, make_campaign, make_judge, make_judgment, make_votes
from tests.factories import make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db
SURE = Route(0, 3, 1)


@pytest.fixture
def books():
    return make_collection("books", overlap=2)


@pytest.fixture
def judges():
    return [make_judge(f"judge-{n}") for n in range(3)]


@pytest.fixture
def campaign(books, judges):
    return make_campaign(books, judges)


def judged(pair, members, grades, reason="disagreement", milliseconds=9_000):
    """People's grades on an item of the pair, which is settled."""
    item = make_item(pair, reason, overlap=2, taken=2, done=2, state=Item.State.SETTLED, place=next_place())
    for member, grade in zip(members, grades, strict=True):
        make_judgment(pair, member.assessor, grade, item=item, milliseconds=milliseconds)
    return item


@pytest.fixture
def couple(books):
    return [make_member(books, "alice"), make_member(books, "bob")]


@pytest.fixture
def charlie(books, client):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    return client


def figures(collection, campaign):
    return {(one.group, one.population): one for one in cached_statistics(collection, campaign).kappas}


def test_every_kappa_names_its_population(books, campaign, judges, couple):
    for n in range(12):
        pair = make_pair(books)
        make_votes(campaign, pair, judges, [n % 2, n % 2, n % 2])
        if n < 6:
            judged(pair, couple, [n % 2, int(n % 4 == 1)], "audit" if n < 2 else "disagreement")
    found = figures(books, campaign)
    assert {key: one.pairs for key, one in found.items()} == {
        ("judges", "all"): 12, ("judges", "escalated"): 4, ("judges", "audited"): 2,
        ("people", "all"): 6, ("people", "escalated"): 4, ("people", "audited"): 2,
    }  # fmt: skip
    everything = found["judges", "all"]
    assert everything.kappa.value == pytest.approx(1) and everything.percent.value == 1
    assert everything.prevalence == 0.5 and everything.assessors == 3
    assert found["people", "all"].percent.value == pytest.approx(5 / 6)


def test_final_answers_after_the_debate_was_revealed_are_named_apart(books, couple):
    nothing = cached_statistics(books)
    assert (nothing.audits, nothing.people, nothing.points) == (None, (), ())
    blank = figures(books, None)["judges", "all"]
    assert blank.kappa.value is None and blank.pairs == 0, "without grades nothing is measured"
    for n in range(4):
        pair = make_pair(books)
        item = judged(pair, couple, [1, 1])
        for member, first in zip(couple, (n % 2, 1), strict=True):
            make_judgment(pair, member.assessor, first, item=item, step="first")
    found = figures(books, None)
    assert found["people", "all"].percent.value == 0.5, "first, blind votes"
    assert found["people (final answers)", "all"].percent.value == 1


def test_a_persons_work_stands_in_numbers_and_who_is_off_the_mark_raises_an_alarm(books, couple):
    alice, bob = couple
    carol = make_member(books, "carol")
    gold = make_assessor(books, "reference", "reference")
    for n in range(40):
        pair = make_pair(books)
        make_judgment(pair, gold, n % 2)
        judged(pair, [alice, bob, carol], [n % 2, n % 2, 1 - n % 2])
    found = {one.name: one for one in cached_statistics(books).people}
    assert (found["alice"].judged, found["alice"].seconds) == (40, 9.0)
    assert found["alice"].gold.value == 1 and found["alice"].gold.low == pytest.approx(0.9119, abs=1e-4)
    assert found["alice"].majority.n == 0, "the others split on every item"
    assert found["carol"].majority.value == 0 and found["carol"].kappa.value == pytest.approx(-1)
    assert found["alice"].alarms == ()
    assert any("gold pairs" in alarm for alarm in found["carol"].alarms)
    assert any("others on 0%" in alarm for alarm in found["carol"].alarms)


def test_skips_and_flags_are_counted_and_haste_is_seen(books, couple):
    alice, bob = couple
    hasty = make_member(books, "carol")
    now = datetime.now(UTC)
    for n in range(20):
        judged(make_pair(books), couple, [1, 1])
        judged(make_pair(books), [hasty, alice], [1, 1], milliseconds=1_000)
        item = make_item(make_pair(books))
        state = Assignment.State.SKIPPED if n else Assignment.State.DONE
        Assignment.objects.create(item=item, membership=bob, state=state, flagged=not n, lease_until=now, ended_at=now)
    people = {person.name: person for person in cached_statistics(books).people}
    assert (people["bob"].skips, people["bob"].flags) == (19, 1)
    assert any("takes 1.0 s" in alarm for alarm in people["carol"].alarms)


def test_agreement_over_time_has_a_point_for_each_day_of_judges_and_people(books, campaign, judges, couple):
    for n in range(8):
        pair = make_pair(books)
        make_votes(campaign, pair, judges, [n % 2, n % 2, int(n > 5)])
        day = datetime(2026, 11, 2 + n // 4, 12, tzinfo=UTC)
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1, ended_at=day)
    judged(make_pair(books), couple, [1, 0])
    found = cached_statistics(books)
    points = {(one.group, one.start): one for one in found.points}
    assert found.unit == "day"
    assert points["judges", "2026-11-02"].pairs == points["judges", "2026-11-03"].pairs == 4
    assert [one.pairs for one in found.points if one.group == "people"] == [1]
    Work.objects.filter(ended_at__day=3).update(ended_at=datetime(2027, 1, 7, 12, tzinfo=UTC))
    found = cached_statistics(books)
    assert found.unit == "week" and "2026-11-02" in {one.start for one in found.points if one.group == "judges"}


def test_costs_of_machine_and_people_and_what_is_to_come(books, campaign, couple):
    Collection.objects.filter(pk=books.pk).update(hourly_rate=36)
    books.refresh_from_db()
    progress = {"pairs": 10, "labelled:1": 4, "escalated:split": 1, "escalated:audit": 2, "settled": 1}
    for key, value in (progress | {"cost": 0.5, "calls": 50, "audited": 1}).items():
        counters.add(campaign.pk, key, value)
    item = judged(make_pair(books), couple, [1, 1], milliseconds=10_000)
    for judgment, member in zip(item.judgments.order_by("pk"), couple, strict=True):
        values = {"lease_until": judgment.created_at, "ended_at": judgment.created_at, "judgment": judgment}
        Assignment.objects.create(item=item, membership=member, state=Assignment.State.DONE, **values)
    found = campaign_costs(books, selectors.campaign_status(books, campaign))
    assert (found.machine, found.machine_forecast) == (0.5, pytest.approx(0.5))
    assert found.people == pytest.approx(4 * 10 / 3600 * 36), "two of an item and two of an audit"
    assert found.waiting == 2 and found.people_forecast == pytest.approx(0.2)
    assert found.total == pytest.approx(0.9) and found.forecast == pytest.approx(0.7)
    books.hourly_rate = None
    found = campaign_costs(books, selectors.campaign_status(books, campaign))
    assert (found.people, found.total, found.people_forecast) == (None, None, None)


def failed_route(collection, campaign, judges, size=30, drawn=20):
    """A route of which people found every audited label wrong."""
    alice, bob = make_member(collection, "alice"), make_member(collection, "bob")
    for n in range(size):
        pair = make_pair(collection)
        make_votes(campaign, pair, judges, [1, 1, 1])
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1)
        if n < drawn:
            item = judged(pair, [alice, bob], [0, 0], "audit")
            values = {"stratum": SURE.key, "probability": drawn / size, "label": 1}
            Audit.objects.create(campaign=campaign, pair=pair, item=item, **values)
    for key, value in {f"route:{SURE.key}": size, "pairs": size, "labelled:1": size, "escalated:audit": drawn}.items():
        counters.add(campaign.pk, key, value)


def test_a_route_over_its_limit_is_an_alarm_and_an_admin_hands_it_to_people(charlie, books, campaign, judges):
    failed_route(books, campaign, judges)
    found = measure_audits(books, campaign, counters.read(campaign.pk))
    assert [route.key for route in found.over] == [SURE.key]
    address = f"/c/books/audits/{campaign.number}/to-people/"
    asked = charlie.get(f"{address}?route={SURE.key}").text
    assert "<strong>10 pairs</strong> will wait for two people each" in asked and "20 judgments" in asked
    assert Item.objects.filter(state="open").count() == 0, "nothing happens before it is confirmed"
    assert charlie.post(address, {"route": SURE.key}).status_code == 302
    assert Item.objects.filter(state="open", reason="audit", overlap=2).count() == 10
    after = selectors.campaign_status(books, campaign)
    assert (after["audits"], after["escalated"], after["labelled"]) == (30, 0, 30)
    assert measure_audits(books, campaign, counters.read(campaign.pk)).drawn == 20, (
        "the estimate rests on the random draw"
    )
    assert services.unasked_pairs(campaign, SURE) == []
    assert charlie.get(f"{address}?route=nonsense").status_code == 404
    assert "above the limit" in charlie.get("/c/books/quality/").text


def test_returned_pairs_are_those_of_the_route_alone(books, judges):
    campaign = make_campaign(books, judges, policy="debate+ensemble")
    for votes, round in (([1, 1, 1], 1), ([1, 1, 0], 1), ([1, 1, 1], 2), ([1, None, 1], 1)):
        pair = make_pair(books)
        make_votes(campaign, pair, judges, votes)
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1, agreed_in_round=round)
    for key in ("r1.m3.y", "r1.m1.y", "r2.m3.y", "r1.m2.y"):
        assert len(services.unasked_pairs(campaign, route_of(key))) == 1


def test_a_large_collection_shows_what_a_worker_computed_and_when(
    charlie, books, campaign, judges, monkeypatch, django_assert_max_num_queries
):
    failed_route(books, campaign, judges)
    monkeypatch.setattr(statistics, "SMALL", 10)
    before = cached_statistics(books)
    assert before.stored and before.kappas is None and before.audits is None, "not computed yet"
    assert statistics.cached_months(books) == ()
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: ["one"])
    assert statistics.STATISTICS.refresh(books) is None and statistics.STATISTICS.refresh(books) is None
    assert not cached_statistics(books, campaign).job.is_over
    compute_statistics()
    with django_assert_max_num_queries(3):
        found = cached_statistics(books)
    assert found.at == StoredResult.objects.get().at and found.stored
    assert found.audits == measure_audits(books, campaign, counters.read(campaign.pk))
    assert {one.group for one in found.kappas} == {"judges", "people"}
    assert [one.name for one in found.people] == ["alice", "bob"]
    assert found.points
    assert {month.membership for month in statistics.cached_months(books)} == {one.membership for one in found.people}
    assert charlie.post("/c/books/statistics/refresh/", headers={"HX-Request": "true"}).status_code == 204
    compute_statistics()
    assert StoredResult.objects.get().at > found.at


def test_an_audit_page_shows_neither_debate_nor_label(client, books, judges):
    campaign = make_campaign(books, judges, policy="debate")
    pair = make_pair(books)
    for side in ("for", "against"):
        make_attempt(campaign, pair, judges[0], 1, role=side, round=1, reason="The tell-tale reason.")
    item = make_item(pair, "audit", overlap=2, campaign=campaign.pk, place=next_place())
    alice = make_member(books, "alice")
    client.force_login(alice.user)
    client.post("/c/books/judge/next/")
    text = client.get("/c/books/judge/").text
    assert pair.document.text[:30] in text
    assert "tell-tale" not in text and 'id="debate"' not in text and "audit" not in text.lower()
    assert "from the text alone" in text
    Item.objects.filter(pk=item.pk).update(reason="disagreement")
    assert "tell-tale" in client.get("/c/books/judge/").text


def test_the_agreement_page_can_be_narrowed_to_audited_pairs(charlie, books, couple):
    judged(make_pair(books), couple, [1, 0])
    audited = [judged(make_pair(books), couple, [n, n], "audit").pair_id for n in (0, 1)]
    text = charlie.get("/c/books/quality/?population=audited").text
    assert "2 pairs (audited" in text and "cell=disagree%3Aaudited" in text
    cell = charlie.get("/c/books/quality/?measure=percent").context["matrix"][0]["cells"][1]
    assert cell["shown"].value == pytest.approx(2 / 3), "the measure that is chosen: kappa is 0.4"
    assert pairs_where(books, "alice", "bob", "agree:audited").tolist() == audited
    assert pairs_where(books, "alice", "bob", "disagree:audited").tolist() == []
