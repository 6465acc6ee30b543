"""Inviting: many at once, all or nothing, by mail where there is any; links that many use, up to a limit and a day."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEntry, Invitation, Membership, Role, User
from annotation.people.accounts import members
from corpus.errors import BadInput
from corpus.models import Collection
from tests.factories import make_collection, make_member, make_user
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough secret"


@pytest.fixture
def charlie(birds: Collection) -> Client:
    return signed_in(make_member(birds, "charlie", Role.ADMIN))


def invite(client: Client, people: str, **given: object):
    return client.post("/c/birds/members/invite/", {"people": people, **given}, follow=True)


def make_link(client: Client, **given: object):
    last = timezone.localdate() + timedelta(days=3)
    values = {"link-note": "Spring", "link-limit": 2, "link-last_day": f"{last:%Y-%m-%d}"}
    return client.post("/c/birds/members/link/", values | given, follow=True)


def test_many_are_invited_at_once_and_their_links_are_shown_once(charlie: Client) -> None:
    page = invite(charlie, "Alice, Bob\n\n  Carol   Doe ;\n", role="adjudicator")
    assert [one["row"].note for one in page.context["made"]] == ["Alice", "Bob", "Carol Doe"]
    assert {one.role for one in Invitation.objects.all()} == {Role.ADJUDICATOR}
    assert {one["link"].split("/")[-2] for one in page.context["made"]} == set(
        Invitation.objects.values_list("token", flat=True)
    )
    assert 'data-copy="all-links"' in page.content.decode()
    assert AuditEntry.objects.filter(act="invitation.made").count() == 3
    assert charlie.get("/c/birds/members/").context["made"] == []


def test_a_wrong_line_is_named_and_nobody_is_invited(charlie: Client) -> None:
    for people, words in (
        ("Alice\nbob@", "Line 2: “bob@” is not an email address."),
        ("Alice\nBob, alice", "Line 2: “alice” appears twice."),
        ("Alice\n" + "x" * 201, "Line 2: a name has at most 200 characters."),
        (" , \n;", "Enter at least one name"),
        ("\n".join(f"p{number}" for number in range(201)), "201 people are too many at once."),
        ("Alice\0", "Null characters are not allowed."),
    ):
        page = invite(charlie, people, days=9)
        assert page.status_code == 422 and words in " ".join(page.context["form"].errors["people"])
        assert page.context["form"]["people"].value() == people and page.context["form"]["days"].value() == "9"
    assert not Invitation.objects.exists()


def test_addresses_get_a_mail_where_there_is_a_server_and_the_link_stays_where_it_fails(charlie, settings):
    settings.EMAIL_HOST = ""
    invite(charlie, "without@example.org")
    assert mail.outbox == [] and Invitation.objects.get().mailed_at is None, "an address is a name then"
    settings.EMAIL_HOST = "127.0.0.1"
    page = invite(charlie, "Alice\nbob@example.org")
    (sent,) = mail.outbox
    bob = Invitation.objects.get(note="bob@example.org")
    assert sent.to == ["bob@example.org"] and "Birds" in sent.subject and bob.token in sent.body
    assert [bool(made["row"].mailed_at) for made in page.context["made"]] == [False, True]
    settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = 9, 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    page = invite(charlie, "carol@example.org")
    assert any("carol@example.org" in str(message) for message in page.context["messages"])
    assert Invitation.objects.latest("pk").mailed_at is None and len(page.context["made"]) == 1


def test_a_reusable_link_admits_as_many_as_it_says_and_the_table_counts_them(charlie: Client) -> None:
    make_link(charlie)
    link = Invitation.objects.get()
    last = timezone.localtime(link.expires_at - timedelta(seconds=1)).date()
    assert (link.limit, link.uses_left, last) == (2, 2, timezone.localdate() + timedelta(days=3))
    answers = []
    for name in ("alice", "bob", "carol"):
        values = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
        answers.append(Client().post(f"/invitations/{link.token}/", values).status_code)
    assert answers == [302, 302, 410]
    members_now = Membership.objects.exclude(user__username="charlie").values_list("user__username", flat=True)
    assert sorted(members_now) == ["alice", "bob"]
    (row,) = charlie.get("/c/birds/members/").context["invitations"]
    assert (row["row"].used, bool(row["closed"])) == (2, True)


def test_a_member_uses_no_link_up_and_a_withdrawn_one_lets_nobody_in_but_who_joined_stays(charlie: Client) -> None:
    make_link(charlie)
    link = Invitation.objects.get()
    with pytest.raises(BadInput):
        members.accept_invitation(invitation=link, user=User.objects.get(username="charlie"))
    link.refresh_from_db()
    assert link.uses_left == 2
    members.accept_invitation(invitation=link, user=make_user("alice"))
    charlie.post(f"/c/birds/invitations/{link.pk}/revoke/")
    with pytest.raises(BadInput):
        members.accept_invitation(invitation=link, user=make_user("bob"))
    assert Membership.objects.filter(user__username="alice", is_active=True).exists()
    assert charlie.get("/c/birds/members/").context["invitations"] == []


def test_a_wrong_reusable_link_is_refused_with_what_was_typed(charlie: Client) -> None:
    for name, value in (
        ("limit", "1"), ("limit", "10001"), ("last_day", "2020-01-01"), ("last_day", "2999-01-01"), ("note", "a\0b"),
        ("role", "king"),
    ):  # fmt: skip
        page = make_link(charlie, **{f"link-{name}": value})
        assert page.status_code == 422 and page.context["link_form"][name].value() == value
    assert not Invitation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_people_who_join_at_once_are_not_more_than_the_limit() -> None:
    birds = make_collection("birds")
    boss = make_user("boss", is_owner=True)
    day = timezone.localdate()
    link = members.make_reusable_link(birds, boss, Role.ANNOTATOR, note="", limit=3, last_day=day)
    people = [make_user(f"p{number}") for number in range(8)]

    def join(user: User) -> bool:
        try:
            members.accept_invitation(invitation=link, user=user)
        except BadInput:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(join, people)) == 3
    link.refresh_from_db()
    assert (link.uses_left, Membership.objects.count()) == (0, 3)
