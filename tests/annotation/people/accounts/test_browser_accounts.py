"""People and accounts in a real Chromium: invitations, the table of people, a second factor, times."""

import re
import time

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value

from annotation.access.audit_log.recording import record
from annotation.models import Invitation, Role, User
from annotation.people.accounts.passwords import PasswordHasher
from tests.evidence import make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
NEW = "a long enough secret"


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


def test_times_are_in_the_browsers_zone_from_the_first_page_on(new_page):
    birds = make_collection("birds")
    record(with_password(make_member(birds, "charlie", Role.ADMIN).user), "settings.changed", birds, keys=["title"])
    page = new_page(timezone_id="Asia/Kathmandu")
    sign_in(page, "charlie")
    page.goto("/c/birds/audit-log/")
    time = page.locator("time").first
    exact = time.get_attribute("title")
    assert exact.endswith(" UTC+05:45") and time.inner_text() == exact.removesuffix(" UTC+05:45")


def test_three_are_invited_by_three_clicks_from_the_start_page_and_a_link_leads_to_the_collection(
    new_page, violations, console
):
    birds = make_collection("birds", title="Birds")
    admin = new_page(user=make_member(birds, "charlie", Role.ADMIN).user)
    admin.goto("/")
    admin.get_by_role("link", name="Birds").first.click()
    admin.get_by_role("navigation").get_by_role("link", name="People").first.click()
    admin.get_by_label("Names or email addresses").fill("Alice\nBob\nCarol")
    admin.get_by_role("button", name="Invite", exact=True).click()
    admin.get_by_role("button", name="Copy all").wait_for()
    links = dict(line.split("\t") for line in admin.locator("#all-links").input_value().split("\n") if line)
    assert [*links] == ["Alice", "Bob", "Carol"] and violations(admin) == []
    admin.reload()
    assert Invitation.objects.count() == 3, "loading the page again invites nobody"
    visitor = new_page()
    visitor.goto(links["Alice"])
    assert violations(visitor) == []
    visitor.get_by_label("Username").fill("alice")
    for field in visitor.locator("input[type=password]").all():
        field.fill(NEW)
    visitor.get_by_role("button", name="Create account and join").click()
    visitor.wait_for_url("**/c/birds/judge/**")
    assert "Welcome" in visitor.locator("main").inner_text()
    again = new_page()
    again.goto(links["Alice"])
    assert "works once" in again.locator("main").inner_text()
    console.clear()  # the closed link says 410


def test_the_table_of_people_fits_1280_pixels_in_rows_of_40(new_page, violations):
    birds = make_collection("birds")
    admin, alice = make_member(birds, "charlie", Role.ADMIN), make_member(birds, "a-rather-long-user-name-of-alice")
    bob = make_member(birds, "bob")
    for _ in range(25):
        item = make_item(make_pair(birds), overlap=2)
        make_judgment(item.pair, alice.assessor, 1, item=item)
        make_judgment(item.pair, bob.assessor, 0, item=item)
    page = new_page(user=admin.user)
    for width, height in ((390, 844), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto("/c/birds/members/")
        assert page.locator(".alerts a").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.table-scroll'))") <= 0
        assert violations(page) == []
    heights = [row.bounding_box()["height"] for row in page.locator("table.members tbody tr").all()]
    assert max(heights) < 42, heights


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
