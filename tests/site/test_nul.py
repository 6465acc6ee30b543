"""A NUL character names nothing that PostgreSQL could hold: 400, at every address and in every field."""

import re

import pytest
from django.test import Client

from annotation.models import Role
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.site.test_permissions import World, routes

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_every_page_refuses_one_in_its_query() -> None:
    world = World()
    owner = world.client("owner")
    owner.raise_request_exception = False
    assert {owner.get(f"{route.path}?q=a%00b").status_code for route in routes(world)} == {400}


def test_one_in_an_address_or_a_cookie_is_refused() -> None:
    client = Client(raise_request_exception=False)
    client.force_login(make_member(make_collection("books"), "alice", Role.ADMIN).user)
    for address in ("/c/bo%00oks/", "/c/books/judge/?x=%00", "/%00", "/c/books/pairs/1%00/"):
        answer = client.get(address)
        assert answer.status_code == 400 and "Bad request" in answer.text, address
    assert client.get("/", headers={"cookie": 'sessionid="aaaaaaaaaaaaaaaa\\000"'}).status_code == 400


def test_one_in_a_form_is_left_out_or_refused_and_never_an_error_of_ours() -> None:
    books = make_collection("books")
    alice = make_member(books, "alice")
    make_item(make_pair(books))
    client = Client(raise_request_exception=False)
    client.force_login(alice.user)
    page = client.post("/c/books/judge/next/", follow=True).content.decode()
    (item,) = re.findall(r'name="item" value="(\d+)"', page)[:1]
    assert client.post("/c/books/judge/draft/", {"item": item, "token": "a\0b", "comment": "x"}).status_code == 400
    client.logout()
    assert client.post("/accounts/login/", {"login": "a\0b", "password": "\0"}).status_code in (200, 400)
