"""Read-only links: one page each, for whoever has the link, until it expires or is revoked; and no way out of it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import lxml.html
import pytest
from django.test import Client
from django.urls import clear_script_prefix, set_script_prefix
from django.utils import timezone

from actions.errors import BadInput, BadOption
from actions.services import Actor
from annotation.access.permissions import collection_scope
from annotation.home.sharing import services
from annotation.home.sharing.options import ShareOptions
from annotation.models import AuditEntry, Membership, Role
from annotation.models.sharing import ShareLink
from annotation.people.accounts import members
from benchmark.models import Report
from config.sharing import PAGES
from tests.admin_site import judged_collection, people_at_work
from tests.benchmark_scene import whole_scene
from tests.factories import client_of, make_collection, make_member
from tests.rankings import make_next_report

pytestmark = pytest.mark.django_db
CLOSED = "This page is not shared"


def make_link(member: Membership, page: str = "overview", **options: Any) -> services.MadeLink:
    actor = Actor.of(collection_scope(member.user, "admin", member.collection.name))
    return services.share_page(actor, member.collection, ShareOptions.read({"page": page, **options}))


@pytest.fixture
def charlie() -> Membership:
    return make_member(make_collection("books", title="Good books"), "charlie", Role.ADMIN)


def open_page(token: str) -> Any:
    return Client().get(f"/shared/{token}/")


def test_a_link_shows_its_page_without_an_account_and_counts_who_opens_it(charlie: Membership) -> None:
    made = make_link(charlie, title="For the board")
    assert re.fullmatch(r"[\w-]{43}", made.token) and made.token not in str(ShareLink.objects.values().get())
    page = open_page(made.token)
    assert page.status_code == 200 and "For the board" in page.text
    assert "Read-only view of Good books, shared until " in page.text and f"{made.row.expires_at:%Y}" in page.text
    Client().head(f"/shared/{made.token}/")
    row = ShareLink.objects.get()
    assert row.opened == 1 and row.last_opened_at is not None
    assert row.expires_at - row.created_at == pytest.approx(timedelta(days=30), abs=timedelta(minutes=1))


def _expire(link: ShareLink) -> None:
    ShareLink.objects.filter(pk=link.pk).update(expires_at=timezone.now())


def _revoke(link: ShareLink) -> None:
    services.revoke_link(Actor("shell"), link)


def _demote(link: ShareLink) -> None:
    member = Membership.objects.get(user=link.made_by)
    members.change_role(membership=member, role=Role.VIEWER)


@pytest.mark.parametrize("close", [_expire, _revoke, _demote])
def test_a_link_that_is_over_answers_like_one_that_never_was(charlie: Membership, close: Any) -> None:
    made = make_link(charlie)
    close(made.row)
    closed, unknown = open_page(made.token), open_page("A" * 43)
    assert closed.status_code == unknown.status_code == 404 and CLOSED in closed.text
    assert closed.content == unknown.content
    headers = [{**page.headers, "X-Request-ID": ""} for page in (closed, unknown)]
    assert headers[0] == headers[1]
    assert ShareLink.objects.get().opened == 0


def test_a_link_opens_neither_another_page_nor_another_collection(charlie: Membership) -> None:
    other = make_member(make_collection("stones", title="Cold stones"), "olga", Role.ADMIN)
    board, stones = make_link(charlie, "leaderboard"), make_link(other)
    page = open_page(board.token).text
    assert "No runs yet" in page and "This collection has no pairs yet" not in page
    assert "Cold stones" in open_page(stones.token).text and "Good books" not in open_page(stones.token).text
    for path in ("", "overview/", "../c/books/", "?page=overview"):
        answer = Client().get(f"/shared/{board.token}/{path}")
        assert answer.status_code in (302, 404) or "This collection has no pairs yet" not in answer.text
    assert client_of(other).post(f"/c/stones/share/{board.row.pk}/revoke/").status_code == 404
    assert open_page(board.token).status_code == 200


@pytest.fixture
def scene() -> Iterator[Membership]:
    _collection, charlie = whole_scene()
    while make_next_report():
        pass
    yield charlie


def _check_closed(page: Any) -> None:
    """No address leads from the page into the site, nothing can be sent, and search engines keep out."""
    document = lxml.html.fromstring(page.text)
    assert document.xpath("//form | //button | //input | //select | //nav | //*[@hx-get or @hx-post]") == []
    assert "Download" not in page.text
    assert [link.get("href") for link in document.xpath("//a[not(starts-with(@href, '#'))]")] == []
    assert page["X-Robots-Tag"] == "noindex, nofollow" and page["Referrer-Policy"] == "no-referrer"
    assert page["Cache-Control"] == "private, no-store" and not page.cookies
    assert "unsafe-inline" not in page["Content-Security-Policy"]


def test_leaderboard_and_report_are_whole_and_closed(scene: Membership) -> None:
    board = open_page(make_link(scene, "leaderboard").token)
    _check_closed(board)
    assert "dense-large" in board.text and "nDCG" in board.text
    report = Report.objects.exclude(before=None).order_by("-number").first()
    assert report is not None
    for number in (None, report.number):
        page = open_page(make_link(scene, "report", report=number).token)
        _check_closed(page)
        assert "Pool saturation" in page.text and page.text.count("<svg") >= 3, "charts are in the page itself"


def test_the_overview_is_closed_and_names_nobody() -> None:
    books = judged_collection()
    charlie = people_at_work(books)["charlie"]
    page = open_page(make_link(charlie).token)
    _check_closed(page)
    for heading in ("Progress", "Label quality", "Cost"):
        assert heading in page.text
    for word in ("alice", "bob", "charlie", "Needs attention", "Export labels", "View ledger"):
        assert word not in page.text


def test_a_page_that_was_not_made_says_so_and_stays_closed(charlie: Membership, settings: Any) -> None:
    assert set(PAGES) == set(ShareLink.SharedPage.values)
    for page in PAGES:
        _check_closed(open_page(make_link(charlie, page).token))
    shown = client_of(charlie).get(f"/shared/{make_link(charlie).token}/")
    _check_closed(shown)
    assert "charlie" not in shown.text, "even for those who are signed in"
    settings.ACCOUNT_RATE_LIMITS = {**settings.ACCOUNT_RATE_LIMITS, "shared_page": "2/m/ip"}
    unknown = [open_page("unknown") for _ in range(3)]
    assert [page.status_code for page in unknown] == [404, 404, 429], "too many openings from one address wait"
    for page in unknown[:2]:
        _check_closed(page)
    assert unknown[2]["X-Robots-Tag"] == "noindex, nofollow"


def test_making_and_revoking_are_in_the_audit_log_without_the_token(charlie: Membership) -> None:
    made = make_link(charlie, days=7)
    for _ in range(2):
        _revoke(made.row)
    entries = list(AuditEntry.objects.order_by("pk").values_list("act", "details"))
    assert [act for act, _details in entries] == ["share.made", "share.revoked"], "a second press changes nothing"
    assert entries[0][1] == {"link": made.row.pk, "page": "overview", "days": 7}


def test_what_cannot_be_shared_is_refused(charlie: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadOption, match="Report not found"):
        make_link(charlie, "report", report=9)
    for options in ({"page": "settings"}, {"page": "overview", "days": 31}, {"page": "overview", "title": "x" * 201}):
        with pytest.raises(BadOption):
            ShareOptions.read(options)
    monkeypatch.setattr(services, "MOST", 1)
    make_link(charlie)
    with pytest.raises(BadInput, match="1 valid links"):
        make_link(charlie)


def test_a_site_below_a_path_shares_below_it(charlie: Membership, settings: Any) -> None:
    settings.FORCE_SCRIPT_NAME = "/quorum"
    set_script_prefix("/quorum/")
    try:
        page = client_of(charlie).post("/c/books/share/", {"page": "overview", "days": 30}).text
        (token,) = re.findall(r'value="http://testserver/quorum/shared/([\w-]{43})/"', page)
        shared = open_page(token)
    finally:
        clear_script_prefix()
    assert shared.status_code == 200
    _check_closed(shared)
