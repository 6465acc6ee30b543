"""What the people-quality page says of each person: gold, repeats, checks, times, Dawid-Skene."""

import pytest

from annotation.models import Assignment, Membership, Role
from annotation.quality.label_quality.annotators import measure_annotators
from annotation.work.quality_control import exclusion
from corpus.models import Assessor, Item, Judgment
from tests.factories import make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return make_collection("books", overlap=3)


def say(member: Membership, item: Item, grade: int, ms: int = 10_000) -> None:
    judgment = Judgment.objects.create(
        pair=item.pair, item=item, assessor=member.assessor, step="final", grade=grade, milliseconds=ms
    )
    Assignment.objects.create(
        item=item, membership=member, state="done", lease_until="2030-01-01T00:00Z", judgment=judgment
    )


def person(collection, name: str):
    return next(one for one in measure_annotators(collection) if one.name == name)


def test_repeats_give_the_agreement_of_a_person_with_themselves(books):
    """By hand: 3 of 4 repeats as the first time; Clopper-Pearson for 3 of 4 is 0.194 to 0.994."""
    alice = make_member(books, "alice")
    for first, again in ((1, 1), (0, 0), (1, 0), (0, 0)):
        item = make_item(make_pair(books))
        say(alice, item, first)
        say(alice, make_item(item.pair, "repeat", state="settled"), again)
    found = person(books, "alice")
    assert (found.intra.value, found.intra.n) == (0.75, 4)
    assert (round(found.intra.low, 3), round(found.intra.high, 3)) == (0.194, 0.994)
    assert found.judged == 4


def test_checks_count_as_gold_and_a_missed_one_is_an_alarm(books):
    alice = make_member(books, "alice")
    gold = Assessor.objects.create(collection=books, kind="reference", name="gold")
    for known, said in ((1, 1), (1, 0), (0, 0)):
        item = make_item(make_pair(books), "check", state="standing", overlap=100)
        Judgment.objects.create(pair=item.pair, assessor=gold, step="import", grade=known)
        say(alice, item, said)
    found = person(books, "alice")
    assert (found.checks, found.missed, found.judged) == (3, 1, 0)
    assert (found.gold.value, found.gold.n) == (2 / 3, 3)
    assert (round(found.gold.low, 3), round(found.gold.high, 3)) == (0.094, 0.992)  # Clopper-Pearson, 2 of 3
    assert any("missed 1 of 3" in alarm for alarm in found.alarms)


def test_times_far_from_everybodys_are_counted_by_person(books):
    """Median 10 s, least spread 0.35: far is below 10 s x exp(-1.05) = 3.5 s and above 28.6 s."""
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    for number in range(30):
        item = make_item(make_pair(books))
        say(alice, item, 1, ms=10_000)
        say(bob, item, 1, ms=3_000 if number < 6 else 29_000 if number < 8 else 10_000)
    assert (person(books, "alice").fast, person(books, "alice").slow) == (0, 0)
    bob = person(books, "bob")
    assert (bob.fast, bob.slow) == (6, 2)
    assert any(alarm.startswith("6 judgments") and "too fast" in alarm for alarm in bob.alarms)


def test_dawid_skene_finds_the_one_who_answers_at_random(books):
    members = [make_member(books, name) for name in ("alice", "bob", "carol", "dave")]
    for number in range(40):
        item, truth = make_item(make_pair(books)), number % 2
        for member in members[:3]:
            say(member, item, truth if number % 13 else 1 - truth)
        say(members[3], item, number // 2 % 2)
    shares = {one.name: one.dawid_skene for one in measure_annotators(books)}
    assert min(shares["alice"], shares["bob"], shares["carol"]) > 0.9
    assert shares["dave"] < 0.65


def test_the_page_shows_it_all_leads_to_the_person_and_costs_at_most_twenty_statements(
    books, client, django_assert_max_num_queries
):
    admin, alice = make_member(books, "admin", Role.ADMIN), make_member(books, "alice")
    for _ in range(3):
        say(alice, make_item(make_pair(books)), 1)
    exclusion.pause(membership=alice, by=admin.user, note="Let us talk.")
    client.force_login(admin.user)
    for address in (f"people/{alice.pk}/", "quality-control/", "gold/", "members/"):
        with django_assert_max_num_queries(20):
            page = client.get(f"/c/books/{address}")
        assert page.status_code == 200, address
        assert "paused" in page.text or address in ("quality-control/", "gold/")


def test_an_admin_sets_aside_and_brings_back_from_the_persons_page(books, client):
    admin, alice = make_member(books, "admin", Role.ADMIN), make_member(books, "alice")
    say(alice, make_item(make_pair(books), overlap=1, taken=1, done=1, state="settled"), 1)
    client.force_login(admin.user)
    here = f"/c/books/people/{alice.pk}/"
    assert client.post(f"{here}exclude/", {"since": "never"}).status_code == 422
    client.post(f"{here}exclude/", {"note": "asleep"})
    act = alice.set_aside.get()
    assert len(act.judgments) == 1 and "1 excluded" in client.get(here).text
    assert client.post(f"{here}exclude/").status_code == 422, "nothing is left to set aside"
    client.post(f"/c/books/quality-control/exclusions/{act.pk}/reinstate/")
    assert Judgment.objects.get(superseded_by=None).grade == 1
    assert client.post(f"/c/books/quality-control/exclusions/{act.pk}/reinstate/").status_code == 422
