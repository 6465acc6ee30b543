"""Pages in English and Chinese: how the language is chosen, and catalogues that are whole."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import User

pytestmark = pytest.mark.django_db

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="a long enough one")


def html_of(client: Client, address: str = "/accounts/login/", **headers: str) -> str:
    return client.get(address, **headers).content.decode()


def test_without_a_choice_the_page_speaks_what_the_browser_asks_for(client: Client) -> None:
    assert '<html lang="en" dir="ltr"' in html_of(client)
    assert '<html lang="zh-hans" dir="ltr"' in html_of(client, **CHINESE)


def test_a_visitor_chooses_a_language_on_the_sign_in_page_and_comes_back_there(client: Client) -> None:
    answer = client.post(reverse("display"), {"language": "zh-hans", "next": "/accounts/login/?next=/"})
    assert (answer.status_code, answer["Location"]) == (303, "/accounts/login/?next=/")
    assert '<html lang="zh-hans"' in html_of(client)


def test_the_language_of_an_account_holds_on_a_device_that_asks_for_another(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post(reverse("display"), {"language": "zh-hans"})
    elsewhere = Client()
    elsewhere.force_login(alice)
    answer = elsewhere.get(reverse("account"), HTTP_ACCEPT_LANGUAGE="en")
    assert '<html lang="zh-hans"' in answer.content.decode()
    assert (answer["Content-Language"], "Accept-Language" in answer["Vary"]) == ("zh-hans", True)


def test_a_language_that_is_not_offered_changes_nothing(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post(reverse("display"), {"language": "tlh"})
    alice.refresh_from_db()
    assert alice.language == ""


@pytest.mark.parametrize("place", ["https://elsewhere.example/", "//elsewhere.example", "/no/such/page/", ""])
def test_the_switch_leads_back_to_pages_of_this_site_only(client: Client, place: str) -> None:
    assert client.post(reverse("display"), {"language": "en", "next": place})["Location"] == "/"


def test_one_request_leaves_no_language_for_the_next(client: Client) -> None:
    assert '<html lang="zh-hans"' in html_of(client, **CHINESE)
    assert '<html lang="en"' in html_of(Client())
