"""The list of operations: how many there are, where their code stands, and who may use them."""

from collections.abc import Iterator

from django.test import Client
from ninja.operation import Operation

from api.authentication import AccessTokenAuth
from api.urls import api

HERE = "/collections/{slug:name}"
SITE = {"GET /collections": "site", "POST /collections": "own-site", f"GET {HERE}": "member"}
# By the first word below the collection; everything else is for its admins.
ACTIONS = {"task": "judge", "conflict": "adjudicate"}


def operations() -> Iterator[tuple[str, Operation]]:
    """Each operation with its address below the API's."""
    for _prefix, router in api._routers:
        for path, view in router.path_operations.items():
            yield from ((path, operation) for operation in view.operations)


def test_the_api_is_for_programs_and_stays_small() -> None:
    document = Client().get("/api/v1/openapi.json").json()
    assert sum(len(methods) for methods in document["paths"].values()) <= 110


def test_an_operation_asks_for_the_role_of_its_page() -> None:
    for path, operation in operations():
        (door,) = operation.auth_callbacks
        assert isinstance(door, AccessTokenAuth)
        word = path.removeprefix(f"{HERE}/").partition("/")[0]
        for method in operation.methods:
            assert door.action == SITE.get(f"{method} {path}", ACTIONS.get(word, "admin")), (method, path)


def test_operations_stand_in_their_rooms() -> None:
    for path, operation in operations():
        module = operation.view_func.__module__
        assert module.startswith("api.") or (module.count(".") == 2 and module.endswith(".api")), (path, module)
