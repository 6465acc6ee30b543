"""The People page and each person's, with every figure and act; a count of judgments is the same wherever it stands."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.home.overview.overview import list_collection_cards, own_work
from annotation.models import Assignment, Membership, Role
from annotation.people import table
from annotation.people.accounts.members import list_members
from annotation.people.pay import list_pay
from annotation.people.table import annotator_record
from annotation.work.judging.page import read_figures
from annotation.work.quality_control import exclusion
from annotation.work.queue.annotators import start_of_site_day
from api.tokens import make_token
from corpus.models import Collection
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db


def test_one_count_of_judgments_stands_everywhere() -> None:
    books = make_collection("books")
    alice, charlie = make_member(books, "alice"), make_member(books, "charlie", Role.ADMIN)
    reasons = ["disagreement"] * 8 + ["check", "check", "qualification", "repeat"]
    # Then a flag, an edited text and a pair that was skipped: none of them is a judgment.
    for reason in (*reasons, "split", "evidence", "conflict"):
        item = make_item(make_pair(books), state="settled", taken=1, done=1, reason=reason)
        judged = reason not in ("split", "evidence", "conflict")
        values = {"item": item, "guideline": 0, "milliseconds": 4_000}
        Assignment.objects.create(
            item=item,
            membership=alice,
            state="skipped" if reason == "conflict" else "done",
            flagged=reason == "split",
            judgment=make_judgment(item.pair, alice.assessor, 1, **values) if judged else None,
            lease_until=timezone.now(),
            ended_at=timezone.now(),
        )
    client, own = client_of(charlie), client_of(alice)
    token = make_token(alice.user, None, name="test", scopes=("read", "judge"), days=1)[1]
    headers = {"Authorization": f"Bearer {token}"}

    def counts() -> dict[str, int]:
        listed = list_members(books).get(pk=alice.pk)
        person = client.get(f"/c/books/people/{alice.pk}/").text
        row = re.search(r"alice.*?</tr>", client.get("/c/books/members/").text, re.DOTALL)
        assert row is not None
        said = {
            "member": listed.judged,
            "today": listed.today,
            "judging page": read_figures(alice).today,
            "card": next(card["judged"] for card in list_collection_cards(alice.user)),
            "own work": own_work(alice)["judged"],
            "own day": own_work(alice)["today"],
            "record": annotator_record(alice)["standing"],
            "pay": sum(row.work.judgments for row in list_pay(books)),
            "API": own.get("/api/v1/collections/books/task", headers=headers).json()["judged_today"],
        }
        for name, pattern, text in (
            ("table", r'data-label="Judged">(\d+)<', row.group()),
            ("home", r"<strong>(\d+)</strong><span>judged in total", own.get("/c/books/").text),
            ("person", r"(\d+) judgments? counts?\.", person),
            ("history", r"in total: (\d+)\.", own.get("/c/books/judge/history/").text),
            ("quality", r"<dt>Judged</dt><dd>\s*(?:<a[^>]*>)?\s*(\d+)<", person),
        ):
            if (found := re.search(pattern, text)) is not None:
                said[name] = int(found[1])
        return said

    before = counts()
    assert set(before.values()) == {12} and {"table", "home", "person", "quality", "history"} <= set(before), before
    since = timezone.now() - timedelta(days=1)
    exclusion.exclude_judgments(membership=alice, by=charlie.user, since=since)
    assert set(counts().values()) == {0}, counts()


@pytest.mark.parametrize(("zone", "minutes", "count"), [("Etc/GMT-14", -1, 0), ("Etc/GMT+12", 1, 1)])
def test_today_is_the_day_of_the_site_everywhere(settings: Any, zone: str, minutes: int, count: int) -> None:
    """Not that of the database, UTC: at any hour, one of the two zones has another day."""
    settings.TIME_ZONE = zone
    books = make_collection("books")
    alice = make_member(books, "alice")
    item = make_item(make_pair(books), state="settled", taken=1, done=1)
    judgment = make_judgment(item.pair, alice.assessor, 1, item=item, guideline=0)
    ended_at = start_of_site_day() + timedelta(minutes=minutes)
    Assignment.objects.create(
        item=item, membership=alice, state="done", judgment=judgment, lease_until=ended_at, ended_at=ended_at
    )
    todays = {
        "member": list_members(books).get(pk=alice.pk).today,
        "judging page": read_figures(alice).today,
        "own day": own_work(alice)["today"],
        "record": annotator_record(alice)["today"],
    }
    assert set(todays.values()) == {count}, todays


@pytest.fixture
def books() -> Collection:
    """Alice and Eve are right on 25 gold pairs, Bob on none; Dora has judged nothing; Eve has left."""
    collection = make_collection("books")
    reference = make_assessor(collection, "gold", "reference")
    alice, bob, eve = (make_member(collection, name) for name in ("alice", "bob", "eve"))
    make_member(collection, "dora", Role.ADJUDICATOR)
    make_member(collection, "charlie", Role.ADMIN)
    for _ in range(25):
        pair = make_pair(collection)
        make_judgment(pair, reference, 1)
        item = make_item(pair, overlap=3)
        for member, grade in ((alice, 1), (bob, 0), (eve, 1)):
            judged(member, item, grade)
    Membership.objects.filter(pk=eve.pk).update(is_active=False)
    return collection


def judged(member: Membership, item, grade: int) -> None:
    judgment = make_judgment(item.pair, member.assessor, grade, item=item, milliseconds=9_000)
    ended = {"state": "done", "lease_until": timezone.now(), "ended_at": timezone.now()}
    Assignment.objects.create(item=item, membership=member, judgment=judgment, **ended)


@pytest.fixture
def charlie(books: Collection) -> Client:
    return signed_in(Membership.objects.get(user__username="charlie"))


def names(client: Client, order: str = "") -> list[str]:
    return [row.member.user.username for row in client.get(f"/c/books/members/?order={order}").context["rows"]]


def test_everybody_is_in_one_table_with_their_quality_alerts_first_and_who_left_last(charlie: Client) -> None:
    page = charlie.get("/c/books/members/")
    rows = {row.member.user.username: row for row in page.context["rows"]}
    assert next(iter(rows)) == "bob" and list(rows)[-1] == "eve"
    assert rows["bob"].alerts and not rows["alice"].alerts
    assert (rows["alice"].judged, rows["alice"].today) == (25, 25)
    assert rows["alice"].quality.gold.value == 1 and rows["dora"].quality is None
    for member in Membership.objects.all():
        assert f'href="/c/books/people/{member.pk}/"' in page.content.decode()


def test_the_table_is_sorted_by_any_column_by_links_and_what_is_not_measured_comes_last(charlie: Client) -> None:
    assert names(charlie, "name") == ["alice", "bob", "charlie", "dora", "eve"]
    assert names(charlie, "-name") == ["eve", "dora", "charlie", "bob", "alice"]
    assert set(names(charlie, "-gold")[:2]) == {"alice", "eve"} and names(charlie, "-gold")[2] == "bob"
    assert names(charlie, "gold")[0] == "bob" and set(names(charlie, "gold")[3:]) == {"charlie", "dora"}
    assert names(charlie, "-role")[0] == "charlie"
    assert names(charlie, "nonsense") == names(charlie)
    for column in table.COLUMNS:
        for order in (column.key, f"-{column.key}"):
            page = charlie.get(f"/c/books/members/?order={order}")
            assert page.status_code == 200 and page.content.decode().count("aria-sort=") == 1


def test_a_name_leads_to_every_figure_with_its_interval_and_to_the_acts(charlie: Client) -> None:
    bob = Membership.objects.get(user__username="bob")
    page = charlie.get(f"/c/books/people/{bob.pk}/")
    assert page.context["quality"].gold.n == 25 and page.context["quality"].alarms
    text = page.content.decode()
    for act in ("members/{}/role", "members/{}/active", "members/{}/password", "people/{}/pause", "people/{}/exclude"):
        assert f'action="/c/books/{act.format(bob.pk)}/"' in text, act


def test_ending_a_membership_offers_to_undo_it(charlie: Client) -> None:
    bob = Membership.objects.get(user__username="bob")
    page = charlie.post(f"/c/books/members/{bob.pk}/active/", {"active": "0"}, follow=True)
    assert page.context["changed"] and not page.context["member"].is_active
    page = charlie.post(f"/c/books/members/{bob.pk}/active/", {"active": "1"}, follow=True)
    assert page.context["changed"] and page.context["member"].is_active
    assert not charlie.get(f"/c/books/people/{bob.pk}/").context["changed"]


def test_the_page_opens_where_the_figures_cannot_be_computed(charlie: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(table, "cached_statistics", fail)
    page = charlie.get("/c/books/members/")
    assert page.status_code == 200 and page.context["failure"] and len(page.context["rows"]) == 5
