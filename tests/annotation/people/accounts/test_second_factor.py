"""The second factor: turning it on, codes that work once, recovery codes, losing the phone, and what is stored."""

import json
import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import cache
from django.test import Client

from annotation.models import AuditEntry, User
from annotation.people.accounts import second_factor
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def code_of(secret: str, steps: int = 0) -> str:
    """What an authenticator app shows; `steps` half minutes from now."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


def sign_in(username: str = "alice") -> tuple[Client, object]:
    client = Client()
    return client, client.post("/accounts/login/", {"login": username, "password": f"{username}-password"})


def turn_on(client: Client, username: str = "alice") -> str:
    """The key; the password was asked again before."""
    assert client.get("/accounts/second-factor/on/")["Location"].startswith("/accounts/confirm/")
    client.post("/accounts/confirm/", {"password": f"{username}-password"})
    page = client.get("/accounts/second-factor/on/").content.decode()
    (secret,) = re.findall(r'id="key" class="mono" value="([A-Z2-7]+)"', page)
    assert client.post("/accounts/second-factor/on/", {"code": code_of(secret)}).status_code == 302
    return secret


@pytest.fixture
def alice(transactional_db: None) -> User:
    return make_user("alice")


def test_signing_in_takes_password_and_code(alice: User) -> None:
    client, _ = sign_in()
    secret = turn_on(client)
    other, answer = sign_in()
    assert answer["Location"] == "/accounts/second-factor/code/"
    assert other.get("/accounts/").status_code == 302, "the password alone opens nothing"
    wrong = other.post("/accounts/second-factor/code/", {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    assert other.post("/accounts/second-factor/code/", {"code": code_of(secret)})["Location"] == "/"
    assert other.get("/accounts/").status_code == 200
    told = list(AuditEntry.objects.order_by("pk").values_list("act", flat=True))
    assert {"second-factor.on", "recovery-codes.made", "session.failed"} <= set(told)


def test_a_code_works_once_within_the_time_that_it_is_good_for(alice: User) -> None:
    client, _ = sign_in()
    code = code_of(turn_on(client), steps=1)  # the next half minute's, which a fast clock shows already
    first, _ = sign_in()
    assert first.post("/accounts/second-factor/code/", {"code": code}).status_code == 302
    second, _ = sign_in()
    # As if more than half a minute had passed: allauth forgot the code, it is still within the tolerance.
    cache.delete(f"allauth.mfa.totp.used?user={alice.pk}&code={code}")
    assert "Incorrect code" in second.post("/accounts/second-factor/code/", {"code": code}).content.decode()


def test_a_recovery_code_lets_in_once_and_new_ones_end_the_old(alice: User) -> None:
    client, _ = sign_in()
    turn_on(client)

    def codes() -> list[str]:
        return re.findall(r"<li>(\d{8})</li>", client.get("/accounts/recovery-codes/").text)

    old = codes()
    assert len(old) == len(set(old)) == 10
    assert client.get("/accounts/recovery-codes/download/").text.split() == old
    first, _ = sign_in()
    assert first.post("/accounts/second-factor/code/", {"code": old[0]})["Location"] == "/"
    second, _ = sign_in()
    assert second.post("/accounts/second-factor/code/", {"code": old[0]}).status_code == 200
    assert AuditEntry.objects.filter(act="recovery-code.used", person=alice).count() == 1
    assert client.post("/accounts/recovery-codes/new/")["Location"] == "/accounts/recovery-codes/"
    assert len(codes()) == 10 and not {*old} & {*codes()}


def test_turning_it_off_takes_a_confirmation_and_ends_the_recovery_codes(alice: User) -> None:
    client, _ = sign_in()
    secret = turn_on(client)
    stranger_at_the_desk, _ = sign_in()
    stranger_at_the_desk.post("/accounts/second-factor/code/", {"code": code_of(secret)})
    assert "/confirm/" in stranger_at_the_desk.post("/accounts/second-factor/off/")["Location"]
    assert client.post("/accounts/second-factor/off/").status_code == 302
    assert not Authenticator.objects.exists()
    assert sign_in()[1]["Location"] == "/"
    assert AuditEntry.objects.filter(act="second-factor.off", person=alice).count() == 1


def test_guessing_codes_is_stopped(alice: User) -> None:
    client, _ = sign_in()
    secret = turn_on(client)
    other, _ = sign_in()
    for guess in range(5):
        other.post("/accounts/second-factor/code/", {"code": f"{guess:06}"})
    page = other.post("/accounts/second-factor/code/", {"code": code_of(secret)}).content.decode()
    assert "Too many failed" in page
    assert other.get("/accounts/").status_code == 302


def test_the_key_is_shown_as_a_picture_and_encrypted_in_the_database(alice: User, settings) -> None:
    client, _ = sign_in()
    client.post("/accounts/confirm/", {"password": "alice-password"})
    page = client.get("/accounts/second-factor/on/").text
    assert "<svg" in page and "data:image" not in page and "style=" not in page
    client, _ = sign_in()
    secret = turn_on(client)
    url = second_factor.SecondFactorAdapter().build_totp_url(alice, secret)
    assert url == f"otpauth://totp/alice?secret={secret}&issuer=Quorum"
    assert secret not in json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
    sealed = Authenticator.objects.get(type="totp").data["secret"]
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another" * 8, [settings.SECRET_KEY]
    assert second_factor.SecondFactorAdapter().decrypt(sealed) == secret, "an old secret key still opens it"


def test_an_owner_takes_a_lost_second_factor_away(alice: User) -> None:
    client, _ = sign_in()
    turn_on(client)
    owner = Client()
    owner.force_login(make_user("boss", is_owner=True))
    owner.post(f"/people/{alice.pk}/remove-second-factor/")
    assert sign_in()[1]["Location"] == "/"
    entry = AuditEntry.objects.get(act="second-factor.removed")
    assert (entry.person.username, entry.concerns) == ("boss", alice)
