"""Sign-in by OpenID Connect against a provider on this machine: who gets in, who does not, and what is kept."""

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEntry, Invitation, Membership, Role, User
from annotation.people.accounts import members
from config import single_sign_on as configured
from corpus.models import Collection
from tests.annotation.people.accounts.oidc_provider import SECRET, Provider, back
from tests.factories import make_user

pytestmark = pytest.mark.django_db

FAULTS = ["forged", "unsigned", "shared-secret", "other-audience", "other-issuer", "expired", "missing"]


@pytest.fixture
def provider(settings, monkeypatch, tmp_path) -> Iterator[Provider]:
    made = Provider()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "secret").write_text(SECRET + "\n")
    monkeypatch.setenv("QUORUM_OIDC_SECRET_FILE", str(tmp_path / "secret"))
    settings.OIDC_URL = made.url
    settings.SOCIALACCOUNT_PROVIDERS = configured.openid_providers(made.url)
    yield made
    made.close()


def leave(client: Client, start: str = "/accounts/provider/sso/login/", **values: str) -> dict[str, str]:
    """To the provider: what it is asked."""
    there = client.post(start, values)
    assert there.status_code == 302, there.content.decode()
    question = {name: words[0] for name, words in parse_qs(urlsplit(there["Location"]).query).items()}
    assert question["code_challenge_method"] == "S256"
    return question


def come_back(client: Client, provider: Provider, question: dict[str, str], who: str, **more: bool):
    return client.get(back(provider, question, who).replace("http://testserver", ""), **more)


def go(client: Client, provider: Provider, *start: str, **values: str):
    """To the provider, yes, and back; the answer to the way back."""
    return come_back(client, provider, leave(client, *start, **values), provider.subject)


def invite(birds: Collection, **values: object) -> Invitation:
    boss = User.objects.filter(username="boss").first() or make_user("boss", is_owner=True)
    return members.invite(collection=birds, role=Role.ANNOTATOR, author=boss, **values)


def connect(provider: Provider, username: str = "alice") -> User:
    """An account with the provider's connection, made on the account page."""
    user = make_user(username)
    client = Client()
    client.post("/accounts/login/", {"login": username, "password": f"{username}-password"})
    assert go(client, provider, process="connect")["Location"] == "/accounts/"
    return user


def test_a_connected_account_signs_in_without_a_password(provider: Provider) -> None:
    alice = connect(provider)
    client = Client()
    assert go(client, provider)["Location"] == "/"
    assert client.get("/accounts/").context["scope"].user == alice
    told = list(AuditEntry.objects.filter(person=alice).order_by("pk").values_list("act", flat=True))
    assert told == ["session.in", "provider.connected", "session.in"]


@pytest.mark.parametrize("fault", FAULTS)
def test_an_id_token_that_cannot_be_trusted_lets_nobody_in(provider: Provider, fault: str) -> None:
    connect(provider)
    provider.fault = fault
    client = Client()
    response = go(client, provider)
    assert response.status_code == 401
    assert client.get("/accounts/").status_code == 302


def test_a_stranger_of_the_provider_makes_no_account(provider: Provider) -> None:
    client = Client()
    assert "Invitation required" in go(client, provider).content.decode()
    assert not User.objects.exists() and not SocialAccount.objects.exists()


def test_an_invitation_makes_the_account_the_connection_and_the_membership(provider: Provider, birds) -> None:
    invitation = invite(birds)
    client = Client()
    page = client.get(f"/invitations/{invitation.token}/").content.decode()
    assert "Test University" in page and f"/invitations/{invitation.token}/provider/" in page
    response = go(client, provider, f"/invitations/{invitation.token}/provider/")
    assert response["Location"] == "/c/birds/judge/?start"
    alice = User.objects.get(username="alice")
    assert not alice.has_usable_password() and alice.email == ""
    assert Membership.objects.get(user=alice).collection == birds
    assert client.get("/c/birds/").status_code == 200
    assert go(Client(), provider)["Location"] == "/c/birds/judge/?start", "and the next time without an invitation"


def test_an_invitation_that_closed_on_the_way_makes_nothing(provider: Provider, birds) -> None:
    invitation, client = invite(birds), Client()
    question = leave(client, f"/invitations/{invitation.token}/provider/")
    Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    come_back(client, provider, question, provider.subject)
    assert not User.objects.filter(username="alice").exists() and not SocialAccount.objects.exists()


def test_the_same_mail_address_or_name_does_not_give_somebody_elses_account(provider: Provider, birds) -> None:
    alice = make_user("alice", email="alice@example.org")
    provider.claims = {"preferred_username": "alice", "email": "alice@example.org", "email_verified": True}
    go(Client(), provider)
    assert not SocialAccount.objects.exists()
    go(Client(), provider, f"/invitations/{invite(birds).token}/provider/")
    assert SocialAccount.objects.get().user != alice
    assert User.objects.exclude(pk=alice.pk).get(is_owner=False).username.startswith("alice")


def test_a_visitor_who_is_asked_turned_back_forged_or_meets_no_provider_gets_a_page(provider: Provider) -> None:
    make_user("alice")
    page = Client().get("/accounts/provider/sso/login/")
    assert page.status_code == 200 and "Test University" in page.text
    assert 'method="post"' in page.text.split("<main")[1], "a GET does not go to the provider"
    client = Client()
    question = leave(client)
    response = come_back(client, provider, question, "", follow=True)
    assert response.redirect_chain[-1][0] == "/accounts/login/"
    forged = come_back(Client(), provider, {**question, "state": "forged"}, provider.subject)
    assert forged.status_code in (401, 302)
    provider.close()
    assert Client().post("/accounts/provider/sso/login/").status_code == 502


def test_disconnecting_leaves_a_way_in(provider: Provider, birds) -> None:
    connect(provider)
    client = Client()
    go(client, provider)
    client.post("/accounts/provider/disconnect/")
    assert not SocialAccount.objects.exists()
    provider.subject = "subject-of-bob"
    bob = Client()
    go(bob, provider, f"/invitations/{invite(birds).token}/provider/")
    assert "no way in" in bob.post("/accounts/provider/disconnect/", follow=True).content.decode()
    assert SocialAccount.objects.count() == 1


def test_secret_tokens_and_claims_are_kept_nowhere(provider: Provider) -> None:
    provider.claims = {"preferred_username": "alice", "email": "alice@example.org", "picture": "https://x.example/a"}
    connect(provider)
    assert not SocialApp.objects.exists() and not SocialToken.objects.exists()
    kept = str(SocialAccount.objects.values_list("extra_data", flat=True).get())
    assert "alice@example.org" not in kept and "picture" not in kept
    assert not re.search(SECRET, str(list(AuditEntry.objects.values())))


def test_without_a_provider_there_is_no_button_and_no_address_whatever_the_database_holds() -> None:
    assert "provider" not in Client().get("/accounts/login/").text
    SocialApp.objects.create(provider="openid_connect", provider_id="sso", name="Evil", client_id="x")
    assert Client().post("/accounts/provider/sso/login/").status_code == 404
    assert Client().get("/accounts/provider/sso/callback/").status_code == 404
