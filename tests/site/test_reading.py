"""Reading writes nothing: every page and GET of the API as everybody, and the rows that each request wrote."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from api.tokens import make_token
from tests.api.test_api_permissions import doors
from tests.site.test_permissions import WHO, World, routes
from tests.stages import first_quick

pytestmark = pytest.mark.django_db

# What a request may write about itself and not about the work: by table, why.
OWN_ROWS = {
    "django_session": "the session itself: its expiry moves, and messages and the language are kept in it",
    "annotation_cache": "Django's cache: limits on attempts are counted there",
    "annotation_storedresult": "statistics are kept by whoever first opens their page, as a cache is",
    "api_accesstoken": "when a token was last used",
    "usersessions_usersession": "which browsers are signed in, and when they were last seen",
}
# In the transaction of the test: what statements wrote on any cursor, savepoints that were rolled back left out.
WRITTEN = "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"


def written() -> Counter[str]:
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN)
        return Counter({name: rows for name, rows in cursor.fetchall() if name not in OWN_ROWS})


@pytest.mark.parametrize("who", first_quick(["admin", *(name for name in WHO if name != "admin")]))
def test_no_page_writes_when_it_is_opened(world: World, who: str) -> None:
    client, writing = world.client(who), []
    for route in routes(world):
        if route.action == "public":
            client = world.client(who)  # some of these end a session
        before = written()
        for headers in ({}, {"HX-Request": "true"}):
            client.get(route.path, headers=headers)
        if changed := written() - before:
            writing.append((route.path, dict(changed)))
    assert writing == []


@pytest.mark.parametrize("who", first_quick(["owner", "admin", "adjudicator", "annotator"]))
def test_no_get_of_the_api_writes(world: World, settings: Any, who: str) -> None:
    settings.API_PER_MINUTE = 10_000
    client, writing, addresses = Client(), [], 0
    token = make_token(world.people[who], None, name="reader", scopes=["read"], days=1)[1]
    for door in doors(world):
        if door.method != "GET":
            continue
        before = written()
        client.get(door.path, headers={"Authorization": f"Bearer {token}"})
        addresses += 1
        if changed := written() - before:
            writing.append((door.path, dict(changed)))
    assert writing == []
    assert addresses > 40


def test_no_page_sends_a_form_by_itself() -> None:
    """Statistics of a large collection apart: those are a cache that no person, audit entry or report is named in."""
    found = []
    for template in sorted(Path("templates").rglob("*.html")):
        text = template.read_text()
        if any("hx-post" in tag and 'hx-trigger="load' in tag for tag in re.findall(r"<[a-z][^<>]*>", text)):
            found.append(str(template.relative_to("templates")))
    assert found == ["agreement/_refresh.html"]
