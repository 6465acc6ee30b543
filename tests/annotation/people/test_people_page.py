"""The People page: members and their quality in one table; each person's page with every figure and act."""

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, Membership, Role
from annotation.people import table
from corpus.models import Collection
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db


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
