"""What fails below the API's address is a problem document, whatever failed; pages say the same in a sentence."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client

from annotation.models import Invitation
from api.problems import JSON
from api.tokens import make_token
from tests.factories import make_collection, make_user

pytestmark = pytest.mark.django_db
HERE = "/api/v1/collections/birds"
FAILS = """
CREATE FUNCTION pg_temp.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file "base/5/16399"' USING ERRCODE = '{code}';
END $$;
CREATE TRIGGER fails BEFORE INSERT ON annotation_invitation FOR EACH ROW EXECUTE FUNCTION pg_temp.fail();
"""


@pytest.fixture
def client() -> Client:
    make_collection("birds")
    owner = make_user("olga", is_owner=True)
    token = make_token(owner, None, name="n", scopes=["read", "manage"], days=1)[1]
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
    client.force_login(owner)
    return client


def problem(answer: Any, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, JSON), answer.content
    document: dict[str, Any] = answer.json()
    assert set(document) == {"title", "status", "detail", "errors"} and document["status"] == status
    assert document["detail"] and int(answer.headers.get("Content-Length", len(answer.content))) == len(answer.content)
    return document


@pytest.mark.parametrize(
    ("code", "status", "word"),
    # An error of ours; its disk is full; it ends one of two that wait for each other.
    [("22012", 500, "logged"), ("53100", 507, "disk is full"), ("40P01", 409, "Try again")],
)
def test_a_failure_of_the_database_is_a_problem_and_a_page(client: Client, code: str, status: int, word: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FAILS.format(code=code))
    answer = client.post(f"{HERE}/invitations", {"people": ["Bob"]}, "application/json")
    assert word in problem(answer, status)["detail"]
    page = client.post("/c/birds/members/invite/", {"people": "Bob"})
    assert page.status_code == status and page.headers["Content-Type"].startswith("text/html")
    assert "base/5" not in page.text + answer.text
    if status == 507:
        assert "disk is full" in page.text
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER fails ON annotation_invitation")
    assert client.post(f"{HERE}/invitations", {"people": ["Bob"]}, "application/json").status_code == 201
    assert Invitation.objects.count() == 1


def test_refusals_of_the_framework_are_problems(client: Client, settings: Any) -> None:
    refused = client.delete(f"{HERE}/invitations")
    assert all(methods in problem(refused, 405)["detail"] for methods in ("no DELETE", "GET, POST"))
    assert set(refused.headers["Allow"].split(", ")) == {"GET", "POST"}
    for method in ("get", "post", "put", "delete", "patch"):
        problem(getattr(client, method)("/api/v1/nowhere"), 404)
        problem(getattr(client, method)("/api/v2/collections"), 404)
        problem(getattr(client, method)(f"{HERE}/runs/1/files/a%0Ab"), 404)
    problem(client.get(f"{HERE}?x=%00"), 400)
    problem(client.get(HERE, headers={"host": "elsewhere.example"}), 400)
    problem(client.post(f"{HERE}/invitations", "{", "application/json"), 400)
    # What is no error is left alone.
    assert client.get("/api/v1/docs").headers["Content-Type"].startswith("text/html")


def test_what_went_away_under_an_operation_is_not_found(client: Client) -> None:
    """A row that refers to one that is gone, as its foreign key says."""
    with connection.cursor() as cursor:
        cursor.execute(FAILS.format(code="23503"))
    answer = client.post(f"{HERE}/invitations", {"people": ["Bob"]}, "application/json")
    assert "deleted" in problem(answer, 409)["detail"]
    assert client.post("/c/birds/members/invite/", {"people": "Bob"}).status_code == 409
