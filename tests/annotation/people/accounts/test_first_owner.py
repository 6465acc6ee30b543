"""The first account of a site: a token that only its starter knows makes one owner, once."""

import threading

import pytest
from django.db import connection
from django.test import Client

from annotation.models import AuditEntry, User
from annotation.people.accounts import first_owner
from corpus.errors import BadInput
from tests.factories import make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough secret"


@pytest.fixture(autouse=True)
def fresh_site() -> None:
    first_owner.token_file().unlink(missing_ok=True)


def claim(token: str, client: Client | None = None, username: str = "olga", password: str = PASSWORD) -> object:
    values = {"token": token, "username": username, "password1": password, "password2": password}
    return (client or Client()).post("/accounts/first/", values)


def test_a_site_without_accounts_asks_for_the_token_wherever_it_would_ask_to_sign_in() -> None:
    addresses = ("/", "/c/birds/", "/people/", "/accounts/login/")
    for address in addresses:
        page = Client().get(address, follow=True)
        assert page.redirect_chain[-1][0] == "/accounts/first/" and b'name="token"' in page.content
    make_user("alice")
    for address in (*addresses, "/accounts/first/"):
        page = Client().get(address, follow=True)
        assert page.request["PATH_INFO"] == "/accounts/login/" and b'name="login"' in page.content


def test_the_token_makes_the_owner_who_is_signed_in_and_begins_with_a_collection(django_capture_on_commit_callbacks):
    token, client = first_owner.ensure_token(), Client()
    assert first_owner.token_file().stat().st_mode & 0o777 == 0o600
    assert first_owner.ensure_token() == token  # What the next start prints.
    with django_capture_on_commit_callbacks(execute=True):
        assert claim(f" {token}\n", client)["Location"] == "/collections/new/"
    assert client.get("/collections/new/").status_code == 200
    owner = User.objects.get()
    assert (owner.username, owner.is_owner) == ("olga", True)
    assert AuditEntry.objects.get(act="account.made").person == owner
    assert not first_owner.token_file().exists() and first_owner.ensure_token() == ""


def test_another_token_or_a_weak_password_makes_nobody() -> None:
    token = first_owner.ensure_token()
    response = claim(token, password="12345")
    assert response.status_code == 422 and f'value="{token}"' in response.text
    assert first_owner.ensure_token() == token
    for wrong in ("", "wrong", "wr\u00f6ng"):
        assert claim(wrong).status_code == 422
    first_owner.token_file().unlink()
    assert claim("").status_code == 422 and not User.objects.exists()


def test_once_there_is_an_account_the_token_opens_nothing() -> None:
    token = first_owner.ensure_token()
    make_user("alice")
    assert claim(token)["Location"] == "/"
    with pytest.raises(BadInput, match="already has an account"):
        first_owner.create_first_owner(username="olga", password=PASSWORD)
    assert User.objects.get().username == "alice"


def test_five_wrong_tokens_from_a_network_lock_it_out_and_right_ones_do_not_count() -> None:
    token = first_owner.ensure_token()
    for _ in range(5):
        assert claim("wrong").status_code == 422
    assert claim(token).status_code == 429
    assert not User.objects.exists()
    elsewhere = Client(REMOTE_ADDR="203.0.113.7")
    assert claim(token, elsewhere).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_of_two_people_with_the_token_one_becomes_the_owner() -> None:
    token, ready, answers = first_owner.ensure_token(), threading.Barrier(2), []

    def post(name: str) -> None:
        try:
            ready.wait(30)
            answers.append(claim(token, username=name)["Location"])
        finally:
            connection.close()

    threads = [threading.Thread(target=post, args=(name,)) for name in ("olga", "oscar")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert User.objects.count() == 1
    assert answers.count("/collections/new/") == 1 and len(answers) == 2
