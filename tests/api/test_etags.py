"""ETags: a read has one and knows it again; a change with If-Match happens to what was read, or not at all."""

import re
from typing import Any

import pytest
from django.test import Client

from annotation.models import Membership, Role
from api.tokens import make_token
from tests.api.conftest import Call
from tests.api.test_api_permissions import doors
from tests.factories import make_collection, make_member
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db


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


def test_a_member_that_somebody_changed_meanwhile_is_not_changed(call: Call) -> None:
    collection = make_collection("c")
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    path = f"collections/c/members/{bob.pk}"
    etag = call(alice.user, "GET", path)["ETag"]
    Membership.objects.filter(pk=bob.pk).update(role=Role.ADJUDICATOR)
    refused = call(alice.user, "PATCH", path, {"role": "admin"}, **{"If-Match": etag})
    assert refused.status_code == 412 and "changed since" in refused.json()["detail"]
    assert Membership.objects.get(pk=bob.pk).role == Role.ADJUDICATOR
    assert call(alice.user, "PATCH", path, {"role": "admin"}, **{"If-Match": "*"}).status_code == 200
