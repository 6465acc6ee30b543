"""The API answers what its document lists (schemathesis); reads have ETags, and changes honour If-Match."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from annotation.data.imports.tus import PART_TYPE
from api.tokens import make_token
from tests.api.test_api_permissions import doors
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db


def test_the_document_is_openapi_3_1_and_names_every_refusal() -> None:
    document = Client().get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert {"401", "403", "404", "422", "429"} <= set(operation["responses"]), (path, method)
            assert operation["security"] == [{"AccessTokenAuth": []}], path


def test_the_page_of_the_document_loads_nothing_from_elsewhere_and_has_no_script_of_its_own() -> None:
    page = Client().get("/api/v1/docs")
    text = page.content.decode()
    assert page.status_code == 200
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    scripts = re.findall(r"<script([^>]*)>", text)
    assert [kind for kind in scripts if "src=" not in kind and "application/json" not in kind] == []


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Keep the test's transaction over requests, as Django's own client does; refusals are wanted and need no log."""
    logger = logging.getLogger("django.request")
    logger.disabled = True
    signals = request_started, request_finished
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    logger.disabled = False
    for signal in signals:
        signal.connect(close_old_connections)


PARTS = 3


@pytest.mark.weekly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("one_connection")
def test_every_operation_answers_what_the_document_says(settings: Any, part: int) -> None:
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    settings.API_PER_MINUTE = 1_000_000
    world = World()
    token = make_token(world.people["admin"], None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
    headers = {"Authorization": f"Bearer {token}"}
    schemathesis.serializer.alias(PART_TYPE, "application/octet-stream")
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 90
    for operation in operations[part::PARTS]:

        @examples(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            if "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = "birds"
            # A grade beyond this collection's scale, or a judge that it does not have, is refused in its content: 422.
            case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

        ask()


def admin_of(world: World) -> dict[str, str]:
    token = make_token(world.people["admin"], None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.slow
def test_every_read_answers_with_an_etag_and_304_to_who_has_it(settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world, client, tagged = World(), Client(), 0
    headers = admin_of(world)
    for door in doors(world):
        answer = client.generic(door.method, door.path, headers=headers) if door.method == "GET" else None
        if (
            answer is None
            or answer.status_code != 200
            or answer.streaming
            or answer["Content-Type"].partition(";")[0] != "application/json"
        ):
            continue
        assert re.fullmatch(r'"[0-9a-f]{32}"', answer["ETag"]), door.path
        assert answer["Cache-Control"] == "private, no-cache"
        again = client.get(door.path, headers={**headers, "If-None-Match": f'"other", W/{answer["ETag"]}'})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"]), door.path
        assert client.get(door.path, headers={**headers, "If-None-Match": '"other"'}).status_code == 200
        tagged += 1
    assert tagged > 25


def test_every_change_honours_if_match(settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world, client = World(), Client()
    headers = admin_of(world)
    changes = [door for door in doors(world) if door.method in ("PATCH", "DELETE")]
    # A part of an upload names the state that it goes on from by its offset, as tus says.
    changes = [door for door in changes if "/uploads/" not in door.path]
    assert len(changes) >= 5
    for door in changes:
        read = client.get(door.path, headers=headers)
        assert read.status_code == 200, door
        for wrong in ('"other"', read["ETag"][1:-1]):
            refused = client.generic(
                door.method, door.path, b"{}", "application/json", headers={**headers, "If-Match": wrong}
            )
            assert refused.status_code == 412 and refused["Content-Type"] == "application/problem+json", door
            assert client.get(door.path, headers=headers)["ETag"] == read["ETag"], door
        done = client.generic(
            door.method, door.path, b"{}", "application/json", headers={**headers, "If-Match": read["ETag"]}
        )
        assert done.status_code in (200, 204), (door, done.content)
        if door.method == "PATCH":
            assert done["ETag"] == client.get(door.path, headers=headers)["ETag"], door
            sent = {"headers": {**headers, "If-Match": "*"}}
            assert client.patch(door.path, b"{}", "application/json", **sent).status_code == 200, door
