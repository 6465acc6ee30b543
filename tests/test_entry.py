"""Who comes into a collection: the session, the account and the membership are read at once, and checked as ever."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from annotation import entry, sessions
from annotation.models import Membership, User
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db
PAGE = "/c/books/judge/"


@pytest.fixture
def alice() -> Client:
    make_member(make_collection("books"), "alice")
    client = Client()
    client.post("/accounts/login/", {"login": "alice", "password": "alice-password"})
    return client


def key_of(client: Client) -> str:
    return client.cookies["sessionid"].value


def is_in(client: Client) -> bool:
    return client.get(PAGE).status_code == 200


def test_a_session_is_read_with_its_member_and_not_once_more(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    membership, data = entry.membership_of(key_of(alice), "books") or (None, "")
    assert membership == Membership.objects.get() and data

    def never(*args: object, **values: object) -> None:
        raise AssertionError("the session was read once more")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", never)
    assert is_in(alice)


def test_a_session_that_was_ended_elsewhere_is_out_at_once(alice: Client) -> None:
    assert is_in(alice)
    assert sessions.end_others(User.objects.get(username="alice"), None) == 1
    assert not is_in(alice)


def test_an_expired_session_is_not_read(alice: Client) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert entry.membership_of(key_of(alice), "books") is None


def test_a_changed_password_lets_nobody_in_with_the_old_session(alice: Client) -> None:
    user = User.objects.get(username="alice")
    user.set_password("another long secret")
    user.save()
    assert entry.membership_of(key_of(alice), "books") is not None
    assert not is_in(alice)


def test_a_row_that_names_another_person_does_not_make_one_of_them(alice: Client) -> None:
    bob = make_user("bob")
    collection = Membership.objects.get().collection
    make_member(collection, "carol")
    carol = User.objects.get(username="carol")
    UserSession.objects.update(user=carol)
    response = alice.get(PAGE)
    assert response.status_code == 200 and response.wsgi_request.user.username == "alice"
    UserSession.objects.update(user=bob)
    assert alice.get(PAGE).wsgi_request.user.username == "alice"


def test_a_session_without_a_row_of_its_own_comes_in_by_the_ordinary_way(alice: Client) -> None:
    UserSession.objects.all().delete()
    assert is_in(alice)


def test_a_closed_account_is_out(alice: Client) -> None:
    User.objects.update(is_active=False)
    assert not is_in(alice)


def test_a_stranger_and_another_collection_are_not_let_in(alice: Client) -> None:
    make_collection("birds")
    assert alice.get("/c/birds/judge/").status_code == 404
    assert Client().get(PAGE).status_code == 302
