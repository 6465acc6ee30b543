"""The zone in which pages show times: the account's, else the browser's, else the site's with its name."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from annotation.access.audit_log.recording import record
from annotation.models import Role, User
from config.env import ROOT
from tests.factories import client_of, make_collection, make_member

KATHMANDU, BERLIN = "Asia/Kathmandu", "Europe/Berlin"


@pytest.fixture
def charlie() -> Client:
    birds = make_collection("birds")
    member = make_member(birds, "charlie", Role.ADMIN)
    record(member.user, "settings.changed", birds, keys=["title"])
    return client_of(member)


def zone_of(page: str) -> str:
    """What follows the first time of the audit log, and what its title says of the zone."""
    title, text = re.findall(r'<time datetime="[^"]*\+00:00" title="([^"]*)">([^<]*)</time>', page)[0]
    assert title.startswith(text.removesuffix(" UTC"))
    return f"{text[-3:] if text[-3:].isalpha() else ''} {title.split(' ', 4)[4]}".strip()


@pytest.mark.django_db
def test_the_browsers_zone_is_used_and_the_accounts_comes_before_it(charlie: Client) -> None:
    log = "/c/birds/audit-log/"
    assert zone_of(charlie.get(log).text) == "UTC UTC"
    charlie.cookies["zone"] = KATHMANDU
    assert zone_of(charlie.get(log).text) == "UTC+05:45"
    account = charlie.get("/accounts/").text
    assert f"This device ({KATHMANDU})" in account and f"<option>{BERLIN}</option>" in account
    charlie.post("/display/", {"zone": BERLIN})
    assert User.objects.get().display == {"zone": BERLIN}
    assert "CE" in zone_of(charlie.get(log).text)
    assert f"<option selected>{BERLIN}</option>" in charlie.get("/accounts/").text
    charlie.post("/display/", {"zone": ""})
    assert zone_of(charlie.get(log).text) == "UTC+05:45"
    assert timezone.get_current_timezone() is timezone.get_default_timezone(), "no zone outlives its request"
    rows = charlie.get(f"{log}?as=csv").text
    assert "+00:00" in rows and "+05:45" not in rows, "files stay in UTC"


@pytest.mark.django_db
def test_what_is_no_zone_changes_nothing(charlie: Client) -> None:
    for name in ("Mars/Phobos", "../../etc/passwd", "/etc/localtime", "x" * 3_000, "Asia"):
        charlie.cookies["zone"] = name
        assert zone_of(charlie.get("/c/birds/audit-log/").text) == "UTC UTC"
        charlie.post("/display/", {"zone": name})
        assert User.objects.get().display == {}


def test_no_template_shows_a_time_in_another_way() -> None:
    # Days without a time of day, values of fields, parameters of addresses, and the mail, which names the zone.
    allowed = re.compile(
        r"\|date:'Y-m-d'|(line\.day|last_day)\|date:|\|date:'c'\|urlencode|zone=invitation\.expires_at\|date:\"e\""
    )
    other = {
        f"{path.name}: {line.strip()[:80]}"
        for path in (Path(ROOT) / "templates").rglob("*.*")
        for line in path.read_text().splitlines()
        if re.search(r"\|date\b|\|time:|datetime=\"\{\{ [\w.]+\|", line) and not allowed.search(line)
    }
    assert other == set()
