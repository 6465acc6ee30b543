"""Quotas and deadlines of people: no new pairs beyond them; held ones can be finished; the admin sets them."""

from datetime import date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.data.bulk.reassigning import may_get_pairs
from annotation.home.overview.overview import own_work
from annotation.models import Assignment, AuditEntry, Membership, Role
from annotation.models.comparisons import Comparison
from annotation.work.comparing import selectors
from annotation.work.comparing import services as comparing
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import WorkLimits
from corpus.models import Collection, Judgment
from tests.comparing_scene import answer, draw, make_relevant
from tests.factories import client_of, make_document, make_item, make_member, make_pair, make_query
from tests.queue_scene import claim, desk, submit

TODAY = date(2026, 11, 30)


def test_a_limit_is_reached_and_the_last_day_itself_is_a_day_of_work() -> None:
    both = WorkLimits(daily=3, total=10)
    for limits, today, judged, reached, left in (
        (WorkLimits(), 900, 9000, "", None),
        (WorkLimits(daily=3), 2, 90, "", 1),
        (WorkLimits(daily=3), 7, 90, "daily_quota", 0),
        (both, 3, 10, "quota", 0),
        (both, 1, 9, "", 1),
    ):
        assert (limits.find_reached(today, judged), limits.pairs_left(today, judged)) == (reached, left)
    assert not WorkLimits().is_over(TODAY) and not WorkLimits(last_day=TODAY).is_over(TODAY)
    assert WorkLimits(last_day=TODAY).is_over(TODAY + timedelta(days=1))


@pytest.fixture
def alice(birds: Collection) -> Membership:
    query = make_query(birds)
    for _ in range(6):
        make_item(make_pair(birds, query, make_document(birds)))
    return make_member(birds, "alice")


@pytest.fixture
def charlie(birds: Collection) -> Client:
    return client_of(make_member(birds, "charlie", Role.ADMIN))


def limit(member: Membership, **limits: object) -> None:
    Membership.objects.filter(pk=member.pk).update(**limits)
    member.refresh_from_db()


def test_at_the_quota_of_the_day_a_calm_page_comes_and_the_next_day_goes_on(alice: Membership) -> None:
    limit(alice, daily_quota=2, lent=1)
    client = client_of(alice)
    client.post("/c/birds/judge/next/")
    page = " ".join(client.get("/c/birds/judge/").text.split())
    assert "<strong>0</strong> of 2 today" in page and "<strong>2</strong> left" in page
    lease = submit(alice, claim(alice), 1)
    assert submit(alice, lease, 1) is None and claim(alice) is None
    page = client.get("/c/birds/judge/").text
    assert "You judged 2 of 2 pairs today." in page and "Undo last" not in page
    page = " ".join(client.get("/c/birds/").text.split())
    assert "You judged all of today's pairs" in page and "judged today, of 2" in page and "to judge" not in page
    client.post("/c/birds/judge/query/next/")
    assert "Done for today" in client.get("/c/birds/judge/query/", follow=True).text
    Assignment.objects.update(ended_at=timezone.now() - timedelta(days=1))
    assert claim(alice) is not None


def test_a_quota_in_all_counts_every_day_and_a_page_of_a_query_keeps_within_it(alice: Membership) -> None:
    limit(alice, total_quota=4)
    submit(alice, claim(alice), 1)
    held = Assignment.objects.get(state="open")
    assert own_work(alice)["waiting"] == 3, "one of the four that are asked for is judged"
    Assignment.objects.filter(state="done").update(ended_at=timezone.now() - timedelta(days=40))
    submit(alice, held, 1)
    Assignment.objects.filter(state="open").update(state="returned", lease_until=timezone.now())
    assignment.in_transaction(lambda db: submitting.claim_query(db, desk(alice)))
    assert Assignment.objects.filter(state="open").count() == 2
    for lease in Assignment.objects.filter(state="open"):
        submit(alice, lease, 0)
    assert claim(alice) is None
    assert "You judged 4 pairs; 4 were asked for." in client_of(alice).get("/c/birds/judge/").text


def test_after_the_deadline_a_held_pair_is_finished_and_no_new_one_comes(alice: Membership) -> None:
    limit(alice, last_day=timezone.localdate())
    lease = claim(alice)
    limit(alice, last_day=timezone.localdate() - timedelta(days=1))
    assert claim(alice) == lease, "the held pair is still theirs"
    assert submit(alice, lease, 1) is None
    assert Judgment.objects.count() == 1
    assert "Your deadline has passed" in client_of(alice).get("/c/birds/judge/").text
    assert not may_get_pairs(alice)


def test_the_admin_sets_sees_and_removes_limits(birds: Collection, alice: Membership, charlie: Client) -> None:
    address = f"/c/birds/people/{alice.pk}/limits/"
    tomorrow = timezone.localdate() + timedelta(days=1)
    values = {"daily_quota": 40, "total_quota": 500, "last_day": tomorrow.isoformat()}
    for _ in range(2):
        assert charlie.post(address, values).status_code == 302
    alice.refresh_from_db()
    assert (alice.daily_quota, alice.total_quota, alice.last_day) == (40, 500, tomorrow)
    entry = AuditEntry.objects.get(act="member.limits")
    assert (entry.concerns, entry.details) == (alice.user, values)
    page = " ".join(charlie.get("/c/birds/members/").text.split())
    assert "0 of 40" in page and "0 of 500" in page and "until" in page
    assert 'value="40"' in charlie.get(f"/c/birds/people/{alice.pk}/").text
    limit(alice, last_day=timezone.localdate() - timedelta(days=1))
    assert "deadline passed" in charlie.get("/c/birds/members/").text
    assert charlie.post(address, {"daily_quota": "0"}).status_code == 422
    charlie.post(address, {"daily_quota": "", "total_quota": "", "last_day": ""})
    alice.refresh_from_db()
    assert (alice.daily_quota, alice.total_quota, alice.last_day) == (None, None, None)
    assert client_of(alice).post(address, values).status_code == 403


def test_comparisons_count_in_a_quota_and_it_ends_both_kinds_of_work(alice: Membership, birds: Collection) -> None:
    make_relevant(birds, documents=4)
    draw(birds, people=1)
    limit(alice, daily_quota=3)
    client = client_of(alice)
    comparing.claim(alice)
    for view in selectors.open_comparisons(alice):
        answer(alice, Comparison.objects.get(set__collection=birds, seq=view.seq), "left")
    assert len(selectors.open_comparisons(alice)) == 1, "no more are assigned than the quota allows"
    submit(alice, claim(alice), 1)
    page = " ".join(client.get("/c/birds/judge/").text.split())
    assert "You judged 3 of 3 pairs today. Thank you." in page and "The count includes 2 comparisons." in page
    assert claim(alice) is None
    home = " ".join(client.get("/c/birds/").text.split())
    assert "<strong>1</strong><span> judged today, of 3 <br>" in home and "2 comparisons" in home
    answer(alice, Comparison.objects.get(set__collection=birds, seq=3), "left")
    assert client.get("/c/birds/compare/").status_code == 302, "what was open can be finished, and then the day ends"
    limit(alice, daily_quota=None, last_day=timezone.localdate() - timedelta(days=1))
    comparing.claim(alice)
    assert not selectors.open_comparisons(alice)
