"""Links, followed: as every role, on an empty and on a full collection, no page links to one that is not there."""

from collections import Counter, deque
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import resolve

from annotation.people.accounts.members import add_member
from tests.admin_site import judged_collection
from tests.factories import make_collection, make_member, make_user
from tests.site.test_permissions import ROLE, World
from tests.stages import first_quick, first_slow

pytestmark = pytest.mark.django_db

OF_A_KIND = 3  # Links to one view with the same parameters that are followed; more of them say nothing new.


class Links(HTMLParser):
    """The addresses that a page's links, downloads and forms sent by GET lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        at = dict(attributes)
        if tag == "a":
            self.found.append(at.get("href") or "")
        if tag == "form" and (at.get("method") or "get").lower() == "get":
            self.found.append(at.get("action") or "")


def follow(client: Client, *starts: str) -> tuple[dict[str, int], set[str]]:
    """Follow every link from `starts` on: how what is broken answered, beside where it is linked; the views seen."""
    queue, known, kinds = deque((start, "") for start in starts), set(starts), Counter[tuple[str, ...]]()
    broken: dict[str, int] = {}
    while queue:
        address, source = queue.popleft()
        answer = client.get(address, follow=True)
        if answer.status_code >= 400:
            broken[f"{address} (linked by {source})"] = answer.status_code
        if not answer.get("Content-Type", "").startswith("text/html") or answer.streaming:
            continue
        parser = Links()
        parser.feed(answer.content.decode())
        for link in parser.found:
            parts = urlsplit(urljoin(answer.request["PATH_INFO"], link))
            there = parts.path + (f"?{parts.query}" if parts.query else "")
            if parts.scheme or parts.netloc or there in known or parts.path.startswith("/static/"):
                continue
            known.add(there)
            try:
                view = resolve(parts.path)
            except Exception:
                broken[f"{there} (linked by {address})"] = 404
                continue
            kind = (view.url_name or "", *sorted({part.split("=")[0] for part in parts.query.split("&")}))
            kinds[kind] += 1
            if kinds[kind] <= OF_A_KIND:
                queue.append((there, address))
    return broken, {name for name, *_ in kinds}


@pytest.mark.parametrize("role", first_quick(["admin", "annotator", "adjudicator", "owner"]))
def test_no_link_of_an_empty_collection_leads_nowhere(role: str) -> None:
    empty = make_collection("empty")
    is_owner, client = role == "owner", Client()
    client.force_login(make_user("olga", is_owner=True) if is_owner else make_member(empty, "alice", ROLE[role]).user)
    broken, seen = follow(client, "/", "/c/empty/")
    assert broken == {}
    assert "account" in seen


@pytest.mark.parametrize("who", first_slow(["owner", "annotator", "adjudicator", "admin", "outsider"], 2))
def test_no_link_of_a_full_collection_leads_nowhere(who: str) -> None:
    world = World()
    books = judged_collection()
    if who in ("annotator", "adjudicator", "admin"):
        add_member(user=world.people[who], collection=books, role=ROLE[who])
    homes = [] if who == "outsider" else ["/c/birds/", "/c/books/"]
    broken, seen = follow(world.client(who), "/", *homes)
    assert broken == {}
    assert len(seen) >= (55 if who in ("admin", "owner") else 5)
