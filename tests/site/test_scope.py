"""The decorator that guards every view: who gets in, what it costs, what a session is worth."""

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path

from annotation.access.permissions import Scope, action
from annotation.models import Role
from config.urls import urlpatterns as site
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db


@action("judge")
def judging(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse(f"{scope.user} {scope.collection} {scope.member.assessor.name} {scope.role.label}")


@action("adjudicate")
def adjudicating(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse("ok")


@action("admin")
def administering(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse("ok")


@action("own-site")
def owning(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse("ok")


@action("site")
def visiting(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [
    path("c/<slug:name>/judge/", judging),
    path("c/<slug:name>/adjudicate/", adjudicating),
    path("c/<slug:name>/admin/", administering),
    path("own/", owning),
    path("visit/", visiting),
    path("accounts/login/", visiting, name="account_login"),
    *site,  # the error pages link to the site's own
]


@pytest.fixture(autouse=True)
def urls(settings: object) -> None:
    settings.ROOT_URLCONF = __name__


def status(client: Client, address: str) -> int:
    return client.get(address).status_code


def signed_in(user: object) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (Role.ANNOTATOR, [200, 403, 403, 403, 200]),
        (Role.ADJUDICATOR, [200, 200, 403, 403, 200]),
        (Role.ADMIN, [200, 200, 200, 403, 200]),
    ],
)
def test_each_role_may_do_what_the_smaller_ones_may(role: Role, expected: list[int]) -> None:
    client = signed_in(make_member(make_collection("birds"), "alice", role).user)
    addresses = ["/c/birds/judge/", "/c/birds/adjudicate/", "/c/birds/admin/", "/own/", "/visit/"]
    assert [status(client, address) for address in addresses] == expected


def test_a_collection_does_not_exist_for_members_of_another() -> None:
    make_collection("birds")
    client = signed_in(make_member(make_collection("stones"), "bob", Role.ADMIN).user)
    assert status(client, "/c/birds/judge/") == status(client, "/c/birds/admin/") == 404
    assert status(client, "/c/nowhere/judge/") == 404


def test_an_owner_administers_every_collection_but_judges_only_as_a_member() -> None:
    birds = make_collection("birds")
    alice = make_user("alice", is_owner=True)
    client = signed_in(alice)
    assert status(client, "/c/birds/admin/") == status(client, "/own/") == 200
    assert status(client, "/c/birds/judge/") == status(client, "/c/birds/adjudicate/") == 403
    assert status(client, "/c/nowhere/admin/") == 404
    make_member(birds, "alice")
    assert status(client, "/c/birds/judge/") == status(client, "/c/birds/adjudicate/") == 200


def test_a_deactivated_member_is_a_stranger() -> None:
    bob = make_member(make_collection("birds"), "bob")
    client = signed_in(bob.user)
    assert status(client, "/c/birds/judge/") == 200
    bob.is_active = False
    bob.save()
    assert status(client, "/c/birds/judge/") == 404


def test_a_deactivated_account_and_a_changed_password_end_the_session() -> None:
    bob = make_member(make_collection("birds"), "bob").user
    client = signed_in(bob)
    bob.set_password("another one entirely")
    bob.save()
    assert status(client, "/c/birds/judge/") == 302
    client = signed_in(bob)
    assert status(client, "/c/birds/judge/") == 200
    bob.is_active = False
    bob.save()
    assert status(client, "/c/birds/judge/") == 302


def test_a_visitor_is_sent_to_sign_in_and_back() -> None:
    make_collection("birds")
    assert (
        Client().get("/c/birds/judge/?page=2")["Location"] == "/accounts/login/?next=%2Fc%2Fbirds%2Fjudge%2F%3Fpage%3D2"
    )
    # An address that takes no GET is no place to come back to: the page that the form stood on is.
    sent = Client().post("/c/birds/judge/next/", headers={"referer": "http://testserver/c/birds/judge/"})
    assert sent["Location"] == "/accounts/login/?next=%2Fc%2Fbirds%2Fjudge%2F"


def test_an_htmx_request_without_a_session_moves_the_whole_page_to_sign_in() -> None:
    response = Client().post(
        "/c/birds/judge/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/c/birds/"}
    )
    assert response.status_code == 401
    assert response["HX-Redirect"] == "/accounts/login/?next=%2Fc%2Fbirds%2F"


def test_session_user_and_membership_cost_a_statement_each() -> None:
    client = signed_in(make_member(make_collection("birds"), "alice").user)
    client.get("/c/birds/judge/")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = client.get("/c/birds/judge/")
    assert response.content == b"alice birds alice annotator"
    assert len(queries) == 3, "the membership brings its collection and assessor"


def test_pages_for_members_are_never_stored_by_a_cache() -> None:
    client = signed_in(make_member(make_collection("birds"), "alice").user)
    assert client.get("/c/birds/judge/")["Cache-Control"] == "private, no-store"


def test_an_unknown_action_is_refused_when_the_view_is_defined() -> None:
    with pytest.raises(ValueError, match="unknown action"):
        action("everything")
