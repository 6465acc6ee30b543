"""The decorator that guards every view: what a membership costs and is worth, and where a visitor is sent."""

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from annotation.access.permissions import Scope, action
from tests.factories import client_of, make_collection, make_member, make_user

pytestmark = pytest.mark.django_db
JUDGING, ADJUDICATING = "/c/birds/judge/", "/c/birds/adjudicate/"


@action("judge")
def judging(request: HttpRequest, scope: Scope) -> HttpResponse:
    return HttpResponse(f"{scope.user} {scope.collection} {scope.member.assessor.name} {scope.role.label}")


def test_an_owner_judges_as_a_member_only() -> None:
    birds, client = make_collection("birds"), Client()
    client.force_login(make_user("alice", is_owner=True))
    assert client.get("/c/nowhere/settings/").status_code == 404
    assert [client.get(address).status_code for address in (JUDGING, ADJUDICATING)] == [403, 403]
    make_member(birds, "alice")
    assert [client.get(address).status_code for address in (JUDGING, ADJUDICATING)] == [200, 200]


def test_a_deactivated_membership_or_account_and_a_changed_password_end_what_was_allowed() -> None:
    bob = make_member(make_collection("birds"), "bob")
    client = client_of(bob)
    bob.is_active = False
    bob.save()
    assert client.get(JUDGING).status_code == 404
    bob.is_active = True
    bob.save()
    assert client.get(JUDGING).status_code == 200
    bob.user.set_password("another one entirely")
    bob.user.save()
    assert client.get(JUDGING).status_code == 302
    client.force_login(bob.user)
    assert client.get(JUDGING).status_code == 200
    bob.user.is_active = False
    bob.user.save()
    assert client.get(JUDGING).status_code == 302


def test_a_visitor_is_sent_to_sign_in_and_back() -> None:
    make_collection("birds")
    sent = Client().get(f"{JUDGING}?page=2")
    assert sent["Location"] == "/accounts/login/?next=%2Fc%2Fbirds%2Fjudge%2F%3Fpage%3D2"
    # An address that takes no GET is no place to come back to: the page that the form stood on is.
    sent = Client().post("/c/birds/judge/next/", headers={"referer": f"http://testserver{JUDGING}"})
    assert sent["Location"] == "/accounts/login/?next=%2Fc%2Fbirds%2Fjudge%2F"
    # HTMX moves the whole page.
    sent = Client().post(JUDGING, headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/c/birds/"})
    assert (sent.status_code, sent["HX-Redirect"]) == (401, "/accounts/login/?next=%2Fc%2Fbirds%2F")


def test_a_membership_costs_one_statement_and_brings_its_collection_and_assessor() -> None:
    request = RequestFactory().get(JUDGING)
    request.user = make_member(make_collection("birds"), "alice").user
    with CaptureQueriesContext(connection) as queries:
        response = judging(request, name="birds")
    assert (response.content, len(queries)) == (b"alice birds alice annotator", 1)
    assert response["Cache-Control"] == "private, no-store"


def test_an_unknown_action_is_refused_when_the_view_is_defined() -> None:
    with pytest.raises(ValueError, match="unknown action"):
        action("everything")
