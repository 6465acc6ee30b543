"""A site below a path: links, redirects, HTMX, cookies and probes, with a proxy that cuts the path off or not."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client, RequestFactory, override_settings
from django.urls import clear_script_prefix, set_script_prefix

from annotation.models import Role
from annotation.people.accounts import members
from config import env
from config.sub_path import below
from tests.factories import client_of, make_collection, make_member, make_user
from tests.instances import Instance

pytestmark = pytest.mark.django_db
BELOW = {
    "FORCE_SCRIPT_NAME": "/quorum", "SESSION_COOKIE_PATH": "/quorum/", "CSRF_COOKIE_PATH": "/quorum/",
    "LANGUAGE_COOKIE_PATH": "/quorum/", "STATIC_URL": "/quorum/static/",
}  # fmt: skip
LINK = re.compile(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)"')


@pytest.fixture(autouse=True)
def sub_path() -> Any:
    with override_settings(**BELOW):
        set_script_prefix("/quorum/")  # As the WSGI handler does for each request; the test client does not.
        yield
    clear_script_prefix()


def test_every_link_of_a_page_an_invitation_and_the_api_document_name_the_path() -> None:
    books = make_collection("books")
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    rooms = (f"/c/books/{room}" for room in ("", "settings/", "members/", "judge/"))
    for page in ("/", *rooms, "/accounts/", "/nowhere/"):
        links = LINK.findall(client.get(page).text)
        assert links and [link for link in links if not link.startswith("/quorum/")] == [], page
    members.invite(collection=books, role=Role.ANNOTATOR, author=books.memberships.get().user)
    assert "http://testserver/quorum/invitations/" in client.get("/c/books/members/").text
    assert all(path.startswith("/quorum/api/v1/") for path in client.get("/api/v1/openapi.json").json()["paths"])


def test_redirects_cookies_and_htmx_keep_the_path() -> None:
    make_collection("books")
    make_user("bob")
    client = Client()
    assert client.get("/c/books/")["Location"] == "/quorum/accounts/login/?next=%2Fquorum%2Fc%2Fbooks%2F"
    assert client.get("/c/books/", headers={"HX-Request": "true"})["HX-Redirect"].startswith("/quorum/accounts/login/")
    client.get("/accounts/login/")
    assert client.post("/accounts/login/", {"login": "bob", "password": "bob-password"})["Location"] == "/quorum/"
    assert {client.cookies[name]["path"] for name in ("csrftoken", "sessionid")} == {"/quorum/"}


@pytest.mark.parametrize("asked", ["/quorum/healthz", "/healthz"])
def test_a_proxy_may_pass_the_path_on_or_cut_it_off(asked: str) -> None:
    statuses: list[str] = []
    environ = RequestFactory().get(asked).environ
    list(below("/quorum", WSGIHandler())(environ, lambda status, _headers: statuses.append(status)))
    assert statuses == ["200 OK"]


@pytest.mark.slow
def test_a_served_page_finds_its_styles_and_scripts(make_instance: Callable[..., Instance]) -> None:
    instance = make_instance(QUORUM_SUB_PATH="/quorum").migrated()
    child = instance.start("manage.py", "serve", "--port", "0", "--judge-workers", "0")
    site = json.loads(child.stdout.readline() if child.stdout else "")["url"].removesuffix("/quorum")
    with urlopen(f"{site}/quorum/accounts/login/", timeout=60) as page:
        files = set(re.findall(r'"(/[^"]*/static/[^"]+\.(?:css|js))"', page.read().decode()))
    assert files and all(file.startswith("/quorum/static/") for file in files)
    for file in [*files, *(file.removeprefix("/quorum") for file in files)]:
        with urlopen(f"{site}{file}", timeout=60) as answer:
            assert answer.status == 200, file


def test_a_path_that_is_none_stops_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, path in (("/quorum/", "/quorum"), ("/a/b", "/a/b"), ("", "")):
        monkeypatch.setenv("QUORUM_SUB_PATH", value)
        assert env.sub_path("QUORUM_SUB_PATH") == path
    for value in ("quorum", "https://x.org/quorum", "/a b"):
        monkeypatch.setenv("QUORUM_SUB_PATH", value)
        with pytest.raises(SystemExit):
            env.sub_path("QUORUM_SUB_PATH")
