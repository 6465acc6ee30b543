"""Accounts in a real Chromium: invitation, second factor, forgotten password, single sign-on; their pages looked at."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value

from annotation.accounts.passwords import PasswordHasher
from annotation.audit_log.recording import record
from annotation.models import AuditEntry, Role, User
from tests.annotation.accounts.oidc_provider import SECRET, Provider
from tests.annotation.accounts.smtp_server import MailServer
from tests.factories import make_collection, make_member, make_user
from tests.plugin_browser import site

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOOKS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
NEW = "a long enough secret"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def live_site(instance_environment: dict[str, str], provider: Provider, mail: MailServer) -> Iterator[str]:
    """A site of its own for these tests, which knows a provider and a mail server."""
    known = {**provider.environment(), "QUORUM_OIDC_SECRET": SECRET, **mail.environment()}
    with site({**instance_environment, **known}) as address:
        yield address


def code_of(secret: str) -> str:
    """What an authenticator app shows now."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def with_password(user: User) -> User:
    """The password of tests, as the served site stores it: the tests' own hasher is a fast one that it refuses."""
    user.password = PasswordHasher().encode(f"{user.username}-password", "salt" * 4)
    user.save(update_fields=["password"])
    return user


def sign_in(page, username: str, password: str = "") -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password or f"{username}-password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/accounts/login/" not in url)


def test_an_invitation_leads_from_the_admins_page_to_the_collection(new_page, violations, console):
    birds = make_collection("birds", title="Birds")
    admin = new_page(user=make_member(birds, "charlie", Role.ADMIN).user)
    admin.goto("/c/birds/members/")
    admin.get_by_label("Names or email addresses").fill("Alice of the library")
    admin.get_by_role("button", name="Invite", exact=True).click()
    link = admin.locator("input[id^=link-]").input_value()
    visitor = new_page()
    visitor.goto(link)
    assert violations(visitor) == []
    visitor.get_by_label("Username").fill("alice")
    for field in visitor.locator("input[type=password]").all():
        field.fill(NEW)
    visitor.get_by_role("button", name="Create account and join").click()
    visitor.wait_for_url("**/c/birds/judge/**")
    assert "Welcome" in visitor.locator("main").inner_text()
    again = new_page()
    again.goto(link)
    assert "works once" in again.locator("main").inner_text()
    console.clear()  # the closed link says 410
    acts = set(AuditEntry.objects.values_list("act", flat=True))
    assert {"invitation.made", "invitation.accepted", "account.made", "member.joined", "session.in"} <= acts


@pytest.mark.slow
def test_a_second_factor_is_turned_on_used_and_replaced_by_a_recovery_code(new_page, violations):
    with_password(make_user("alice"))
    page = new_page()
    sign_in(page, "alice")
    page.goto("/accounts/")
    page.get_by_role("link", name="Two-factor authentication").click()
    page.get_by_role("link", name="Turn on").click()
    assert violations(page) == []
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/second-factor/on/**")
    box = page.locator("svg.qr").bounding_box()
    assert box["width"] >= 180, "large enough for a phone's camera"
    assert violations(page) == []
    secret = page.get_by_role("textbox", name="Key").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Turn on").click()
    page.wait_for_url("**/recovery-codes/**")
    codes = page.locator("ul.codes li").all_inner_texts()
    assert len(codes) == 10
    assert violations(page) == []
    phone = new_page(**PHONE)
    sign_in(phone, "alice")
    phone.wait_for_url("**/second-factor/code/")
    assert violations(phone) == []
    phone.get_by_label("Code").fill(code_of(secret))
    phone.get_by_role("button", name="Sign in", exact=True).click()
    phone.wait_for_url(re.compile(r"/$"))
    without_phone = new_page()
    sign_in(without_phone, "alice")
    without_phone.get_by_label("Code").fill(codes[3])
    without_phone.get_by_role("button", name="Sign in", exact=True).click()
    without_phone.wait_for_url(re.compile(r":\d+/$"))
    page.goto("/accounts/recovery-codes/")
    assert len(page.locator("ul.codes li").all()) == 9


@pytest.mark.slow
def test_a_forgotten_password_is_set_by_the_link_that_an_owner_hands_over(new_page, violations):
    alice = make_user("alice")
    owner = new_page(user=make_user("boss", is_owner=True))
    owner.goto("/people/")
    assert violations(owner) == []
    owner.locator(f"#person-{alice.pk} summary").first.click()
    assert violations(owner) == []
    owner.get_by_role("button", name="Create password link").click()
    link = owner.locator("#link").input_value()
    assert violations(owner) == []
    page = new_page()
    page.goto(link)
    assert "set-password" in page.url, "the key is not in the address any more"
    assert violations(page) == []
    for field in page.locator("input[type=password]").all():
        field.fill(NEW)
    page.get_by_role("button", name="Save password").click()
    page.wait_for_url("**/password/reset/done/")
    sign_in(page, "alice", NEW)
    page.wait_for_url(re.compile(r":\d+/$"))


def test_a_forgotten_password_is_set_by_mail(new_page, mail, violations):
    User.objects.create_user("bob", password="bob-password", email="bob@example.org")
    page = new_page()
    page.goto("/accounts/login/")
    page.get_by_role("link", name="Forgot your password?").click()
    assert violations(page) == []
    page.get_by_label("Email").fill("bob@example.org")
    page.get_by_role("button", name="Send link").click()
    page.wait_for_url("**/password/reset/sent/")
    ((to, message),) = [one for one in mail.mails if one[0] == ["bob@example.org"]]
    (link,) = re.findall(r"http://\S+", message.get_content())
    page.goto(link)
    for field in page.locator("input[type=password]").all():
        field.fill(NEW)
    page.get_by_role("button", name="Save password").click()
    sign_in(page, "bob", NEW)
    page.wait_for_url(re.compile(r":\d+/$"))
    assert to == ["bob@example.org"]


@pytest.mark.slow
def test_an_invited_person_joins_and_signs_in_by_the_provider(new_page, provider, violations):
    birds = make_collection("birds", title="Birds")
    admin = new_page(user=make_member(birds, "charlie", Role.ADMIN).user)
    admin.goto("/c/birds/members/")
    admin.get_by_label("Names or email addresses").fill("Dora")
    admin.get_by_role("button", name="Invite", exact=True).click()
    link = admin.locator("input[id^=link-]").input_value()
    visitor = new_page()
    visitor.goto(link)
    visitor.get_by_role("button", name="Join with Test University").click()
    visitor.wait_for_url(f"{provider.url}/authorize**")
    visitor.get_by_role("button", name=f"Continue as {provider.subject}").click()
    visitor.wait_for_url("**/c/birds/judge/**")
    visitor.goto("/accounts/")
    assert "connected" in visitor.locator("dl.facts").inner_text()
    assert violations(visitor) == []
    visitor.get_by_role("button", name="Sign out", exact=True).last.click()
    visitor.goto("/accounts/login/")
    assert violations(visitor) == []
    visitor.get_by_role("button", name="Sign in with Test University").click()
    visitor.wait_for_url(f"{provider.url}/authorize**")
    visitor.get_by_role("button", name=f"Continue as {provider.subject}").click()
    visitor.wait_for_url("**/c/birds/judge/**")
    assert "Birds" in visitor.title()
    assert User.objects.filter(username="alice").count() == 1


def test_a_person_with_an_account_connects_it_and_turns_back_once(new_page, provider):
    with_password(make_user("dora"))
    page = new_page()
    sign_in(page, "dora")
    page.goto("/accounts/")
    page.get_by_role("button", name="Connect with Test University").click()
    page.wait_for_url(f"{provider.url}/authorize**")
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(re.compile(r":\d+/$"))
    page.goto("/accounts/")
    page.get_by_role("button", name="Connect with Test University").click()
    page.get_by_role("button", name=f"Continue as {provider.subject}").click()
    page.wait_for_url("**/accounts/")
    assert "Account connected." in page.locator("main").inner_text()


@pytest.mark.parametrize("look", ["light", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dark", "phone"))])
def test_the_account_and_audit_pages_have_no_violation(new_page, violations, look):
    birds = make_collection("birds", title="Birds")
    alice, boss = make_member(birds, "alice", Role.ADMIN).user, make_user("boss", is_owner=True)
    for number in range(60):
        record(alice, "settings.changed", birds, number=number)
    record(boss, "member.role", birds, concerns=alice, before="annotator", after="admin")
    with_password(boss)
    page = new_page(**LOOKS[look])
    sign_in(page, "boss")
    page.wait_for_url(re.compile(r":\d+/$"))
    for address in (
        "/accounts/",
        "/audit-log/",
        "/c/birds/audit-log/?act=member.role&person=alice",
        "/audit-log/?person=nobody",
        "/people/",
        "/accounts/second-factor/",
        "/accounts/password/change/",
    ):
        page.goto(address)
        assert violations(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= screen.width"), address


def test_the_audit_log_is_filtered_paged_and_downloaded(new_page):
    birds = make_collection("birds", title="Birds")
    alice = make_member(birds, "alice", Role.ADMIN).user
    for number in range(60):
        record(alice, "settings.changed", birds, number=number)
    page = new_page(user=alice)
    page.goto("/c/birds/audit-log/")
    page.get_by_role("link", name="Older").click()
    page.wait_for_url("**before=*")
    assert page.locator("tbody tr").count() == 10
    page.get_by_label("Action", exact=True).select_option("settings.changed")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**act=settings.changed**")
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    assert got.value.suggested_filename == "audit-log.csv"
    assert len(Path(got.value.path()).read_text().splitlines()) == 61
