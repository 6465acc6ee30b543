"""Hours, pairs, pay and quality of each person by month: one count of judgments, one measure of time."""

import csv
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.test import Client

from annotation.models import Assignment, Membership, Role
from annotation.models.comparisons import Comparison
from annotation.people.pay import list_pay
from annotation.work.comparing import selectors, services
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection, Item
from tests.annotation.work.quality_control.test_care import gold
from tests.comparing_scene import answer, draw, make_relevant
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag, submit


@pytest.fixture
def books(db: None) -> Collection:
    return make_collection("books", overlap=2, hourly_rate=30.0)


@pytest.fixture
def alice(books: Collection) -> Membership:
    return make_member(books, "=alice")


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(make_member(books, "charlie", Role.ADMIN))


def judge(member: Membership, count: int, *, seconds: float | None, grade: int = 1) -> None:
    for _ in range(count):
        lease = claim(member)
        assert lease is not None
        lease.lent_at = datetime(2020, 1, 1, tzinfo=UTC)
        lease.save()
        submit(member, lease, grade, milliseconds=None if seconds is None else int(seconds * 1000), idle=0)


def test_hours_are_measured_time_and_the_median_for_pairs_without_one(books: Collection, alice: Membership) -> None:
    """By hand: 4 x 60 s and 1 x 120 s; two without a time at the median of 60 s: 480 s; 30 USD an hour make 4 USD."""
    for _ in range(8):
        make_item(make_pair(books), overlap=2)
    judge(alice, 4, seconds=60)
    judge(alice, 1, seconds=120)
    judge(alice, 2, seconds=None)
    flag(alice, claim(alice), "odd")
    (row,) = list_pay(books)
    assert median_seconds(books) == 60
    assert (row.work.judgments, row.work.untimed, row.work.hours) == (7, 2, pytest.approx(480 / 3600))
    assert row.pay == pytest.approx(4.0)
    Collection.objects.update(hourly_rate=None)
    books.refresh_from_db()
    assert list_pay(books)[0].pay is None


def test_months_are_apart_and_their_pairs_add_up_to_the_judgments_of_the_people_page(books, alice, charlie):
    for _ in range(6):
        make_item(make_pair(books), overlap=2)
    judge(alice, 6, seconds=30)
    old = Assignment.objects.order_by("pk")[:2].values_list("pk", flat=True)
    Assignment.objects.filter(pk__in=list(old)).update(ended_at=datetime(2026, 2, 28, 12, tzinfo=UTC))
    rows = list_pay(books)
    assert [row.work.judgments for row in rows] == [4, 2] and rows[1].work.month == "2026-02"
    page = charlie.get(f"/c/books/people/{alice.pk}/")
    assert page.context["care"]["standing"] == sum(row.work.judgments for row in rows)


def test_quality_has_its_interval_and_number_and_no_line_borrows_from_another_month(books, alice):
    bob = make_member(books, "bob")
    for number in range(4):
        pair = make_pair(books)
        make_item(pair, overlap=2)
        gold(pair, int(number != 0))
    judge(alice, 4, seconds=30)
    judge(bob, 4, seconds=30, grade=0)
    by_name = {row.work.name: row for row in list_pay(books)}
    alices, bobs = by_name["=alice"], by_name["bob"]
    assert (alices.gold.value, alices.gold.n, bobs.gold.value) == (0.75, 4, 0.25)
    assert (round(alices.gold.low, 4), round(alices.gold.high, 4)) == (0.1941, 0.9937)  # Clopper-Pearson, 3 of 4
    assert (alices.agreement.value, alices.agreement.n) == (0.0, 4)
    assert Item.objects.filter(state="open").count() == 0


def test_the_table_and_the_file_say_the_same_and_no_cell_is_a_formula(books, alice, charlie):
    assert "No judgments yet" in charlie.get("/c/books/people/pay/").text
    for _ in range(3):
        make_item(make_pair(books), overlap=2)
    judge(alice, 1, seconds=4)
    page = " ".join(charlie.get("/c/books/people/pay/").text.split())
    assert 'data-label="Hours"> 4 s</td>' in page and "0 min" not in page, "below a minute hours are seconds"
    judge(alice, 2, seconds=1798)
    page = " ".join(charlie.get("/c/books/people/pay/").text.split())
    assert "$30.00 per hour" in page and ">30.00</td>" in page and "=alice" in page
    text = charlie.get("/c/books/people/pay.csv").text
    (row,) = csv.DictReader(StringIO(text))
    assert row["person"] == "'=alice"
    assert (row["hours"], row["pairs"], row["usd_per_hour"], row["pay_usd"]) == ("1.000", "3", "30.0", "30.00")
    assert (row["gold_accuracy"], row["gold_pairs"]) == ("", "0")
    assert client_of(alice).get("/c/books/people/pay.csv").status_code == 403


def test_comparisons_count_apart_from_pairs_with_their_own_time(books, alice, charlie):
    """Alice answers three in 90 s each, one without a time; the fourth is undone: 3 x 90 s at 30 USD an hour."""
    make_relevant(books, documents=4)
    draw(books, people=1)
    for seconds in (90, 90, None, 90):
        services.claim(alice)
        view = selectors.open_comparisons(alice)[0]
        comparison = Comparison.objects.get(set__collection=books, seq=view.seq)
        answer(alice, comparison, "left", **({} if seconds is None else {"seconds": seconds}))
    services.undo(alice)
    (row,) = list_pay(books)
    assert (row.work.judgments, row.work.comparisons, row.work.hours) == (0, 3, pytest.approx(270 / 3600))
    assert row.pay == pytest.approx(2.25)
    page = " ".join(charlie.get("/c/books/people/pay/").text.split())
    assert 'data-label="Comparisons">3</td>' in page and "4 min" in page and ">2.25</td>" in page
    (line,) = csv.DictReader(StringIO(charlie.get("/c/books/people/pay.csv").text))
    assert (line["pairs"], line["comparisons"], line["hours"], line["pay_usd"]) == ("0", "3", "0.075", "2.25")
