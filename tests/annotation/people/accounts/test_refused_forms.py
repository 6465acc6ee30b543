"""A form that was sent with a dead session waits behind the sign-in; a refused one says what helps."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from annotation.models import Guideline, Membership, Role
from corpus.models import Collection
from tests.factories import make_collection, make_member
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db

TEXT = "A document is relevant\r\nwhen it <b>answers</b> & names the year."


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


@pytest.fixture
def charlie(books: Collection) -> Membership:
    return make_member(books, "charlie", Role.ADMIN)


def sign_in(client: Client, address: str) -> Any:
    page = client.get(address)
    back = unescape(re.search(r'name="next" value="([^"]*)"', page.text)[1])  # type: ignore[index]
    return client.post(
        "/accounts/login/", {"login": "charlie", "password": "charlie-password", "next": back}, follow=True
    )


def test_what_an_admin_typed_outlives_the_session(charlie: Membership) -> None:
    client = signed_in(charlie)
    Session.objects.all().delete()
    page = "/c/books/settings/guidelines/"
    answer = client.post(page, {"text": TEXT}, headers={"Referer": f"http://testserver{page}"})
    assert answer.status_code == 302 and not Guideline.objects.exists()
    login = client.get(answer["Location"])
    assert "was not saved" in login.text
    offered = sign_in(client, answer["Location"])
    assert "Not saved yet" in offered.text and "names the year" in offered.text
    form = offered.text.split('class="row"')[1]
    action = re.search(r'action="([^"]*)"', form)[1]  # type: ignore[index]
    sent = {
        name: unescape(text)
        for name, text in re.findall(r'<textarea name="(\w+)" hidden>\n(.*?)</textarea>', form, re.S)
    }
    assert action == page
    assert client.post(action, sent).status_code in (200, 302, 303)
    assert client.session.get("unsent_form") is None
    assert Guideline.objects.latest("version").text.replace("\r\n", "\n").strip() == TEXT.replace("\r\n", "\n")


def test_a_unsent_form_holds_no_secret_and_can_be_discarded(charlie: Membership) -> None:
    client = Client()
    form = {"title": "New words here", "api_token": "s3cret-s3cret", "password": "p4ss"}
    answer = client.post("/c/books/settings/", form)
    offered = sign_in(client, answer["Location"])
    assert "New words here" in offered.text and "s3cret" not in offered.text and "p4ss" not in offered.text
    assert client.post("/accounts/unsent-form/").status_code == 302
    assert client.get("/accounts/unsent-form/").context["kept"] is None


def test_behind_a_proxy_that_rewrites_host_the_page_names_the_setting(charlie: Membership) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/accounts/login/")
    token = client.cookies["csrftoken"].value
    headers = {"Origin": "https://quorum.example.org"}
    page = client.post("/accounts/login/", {"login": "x", "csrfmiddlewaretoken": token}, headers=headers)
    assert page.status_code == 403 and "CSRF_TRUSTED_ORIGINS=https://quorum.example.org" in page.text
    evil = client.post("/accounts/login/", {}, headers={"Origin": 'https://"><script>x'})
    assert evil.status_code == 403 and "<script>x" not in evil.text


def test_a_stale_cookie_and_a_missing_one_say_what_helps(charlie: Membership) -> None:
    client = Client(enforce_csrf_checks=True)
    assert "Allow cookies" in client.post("/accounts/login/", {"login": "x"}).text
    client.get("/accounts/login/")
    stale = client.post("/accounts/login/", {"login": "x", "csrfmiddlewaretoken": "a" * 64})
    assert stale.status_code == 403 and "csrftoken" in stale.text and "reload the page" in stale.text
    assert "moment" not in stale.text
