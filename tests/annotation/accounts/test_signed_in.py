"""Who comes into a collection: Django's session and account, and their membership, asked at every request."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotation.accounts import sessions
from annotation.models import Membership, User
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db
PAGE = "/c/books/judge/"
TABLES = ("django_session", "annotation_user", "annotation_membership")


@pytest.fixture
def alice() -> Client:
    make_member(make_collection("books"), "alice")
    client = Client()
    client.post("/accounts/login/", {"login": "alice", "password": "alice-password"})
    return client


def is_in(client: Client) -> bool:
    return client.get(PAGE).status_code == 200


def test_a_page_of_a_collection_reads_session_account_and_membership_once_each(
    alice: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(20) as counted:
        assert is_in(alice)
    read = [table for query in counted.captured_queries for table in TABLES if f'FROM "{table}"' in query["sql"]]
    assert read == list(TABLES)


def test_a_session_that_was_ended_elsewhere_is_out_at_once(alice: Client) -> None:
    assert is_in(alice)
    assert sessions.end_others(User.objects.get(username="alice"), None) == 1
    assert not is_in(alice)


def test_an_expired_session_is_not_read(alice: Client) -> None:
    assert is_in(alice)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not is_in(alice)


def test_a_changed_password_lets_nobody_in_with_the_old_session(alice: Client) -> None:
    user = User.objects.get(username="alice")
    user.set_password("another long secret")
    user.save()
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


def test_a_session_without_a_row_of_its_own_comes_in_all_the_same(alice: Client) -> None:
    UserSession.objects.all().delete()
    assert is_in(alice)


def test_a_closed_account_is_out(alice: Client) -> None:
    User.objects.update(is_active=False)
    assert not is_in(alice)


def test_a_stranger_and_another_collection_are_not_let_in(alice: Client) -> None:
    make_collection("birds")
    assert alice.get("/c/birds/judge/").status_code == 404
    assert Client().get(PAGE).status_code == 302


def test_a_membership_that_was_ended_is_out_at_the_next_request(alice: Client) -> None:
    assert is_in(alice)
    Membership.objects.update(is_active=False)
    assert alice.get(PAGE).status_code == 404
