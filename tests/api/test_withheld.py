"""What opens something by itself: no token of scope `read` sees it, nor any page of who only judges."""

import html
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.test import Client

from annotation.models import Assignment, Invitation, Role, User
from annotation.people.accounts import members
from annotation.people.api import InvitationOut
from api.models import AccessToken, IdempotentAnswer
from api.tokens import make_token
from api.withheld import FIELDS, GuardedSchema, fields_of
from tests.api.conftest import Call
from tests.api.test_api_permissions import doors
from tests.attacked_site import pages
from tests.evidence import make_judge
from tests.factories import make_item, make_pair
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db
READERS = ("annotator", "adjudicator", "admin", "owner")


def plant(world: World) -> dict[str, str]:
    """Everything of a site that lets somebody in, or lets them write: {what it is: the value}."""
    secrets: dict[str, str] = {}
    for role in Role:
        one = members.invite(collection=world.collection, role=role, author=world.people["owner"])
        secrets[f"invitation as {role.name}"] = one.token
    shared = members.invite(collection=world.collection, role=Role.ADMIN, author=world.people["admin"])
    Invitation.objects.filter(pk=shared.pk).update(limit=50, uses_left=40)
    secrets |= {"a link of several uses": shared.token, "the world's own": world.invitation.token}
    hook = world.webhook
    hook.url = "https://ice.example/services/planted-path?key=planted-query"
    hook.secret, hook.former_secret, hook.description = "planted-secret", "planted-former", "To the chat"
    hook.save()
    world.delivery.log.update(answer="you sent this to /services/planted-path?key=planted-query")
    secrets |= {word: f"planted-{word}" for word in ("path", "query", "secret", "former")}
    headers = {"X-Gateway": "planted-header"}
    make_judge("gateway", parameters={"extra_headers": headers, "token_command": ["echo", "planted-command"]})
    secrets |= {word: f"planted-{word}" for word in ("header", "command")}
    for person in world.people.values():
        Authenticator.objects.create(user=person, type="totp", data={"secret": f"planted-factor-{person.pk}"})
        secrets[f"second factor of {person}"] = f"planted-factor-{person.pk}"
        secrets[f"hash of the password of {person}"] = person.password
    item = make_item(make_pair(world.collection))
    held = Assignment.objects.create(
        item=item, membership=world.bystander, state="open", lease_until="2199-01-01T00:00:00Z"
    )
    secrets["somebody else's pair"] = held.token
    row, token = make_token(world.people["admin"], None, name="program", scopes=["manage"], days=1)
    IdempotentAnswer.objects.create(token=row, key="k", request="0" * 64, status=201, body=b"planted-answer")
    secrets |= {"token": token, "digest": row.digest, "answer": "planted-answer"}
    Client().force_login(world.people["admin"])
    secrets |= {f"session {one.pk[:4]}": one.pk for one in Session.objects.all()}
    assert all(len(value) > 10 for value in secrets.values())
    return secrets


def shown(secrets: dict[str, str], text: str) -> list[str]:
    return [name for name, value in secrets.items() if value and value in text]


def reads(world: World, user: User) -> Iterator[tuple[str, str]]:
    """(address, answer with its headers) of every GET of the API, with a token of this person for reading."""
    client = Client()
    token = make_token(user, None, name="reader", scopes=["read"], days=1)[1]
    for door in doors(world):
        if door.method == "GET":
            answer = client.get(door.path, headers={"Authorization": f"Bearer {token}"})
            body = answer.getvalue() if answer.streaming else answer.content
            yield door.path, f"{dict(answer.items())}\n{body.decode(errors='replace')}"


def plain(text: str) -> str:
    """A text as its reader has it, whether it came as JSON or as HTML."""
    return html.unescape(text.replace("\\/", "/"))


@pytest.mark.parametrize("who", READERS)
def test_no_read_shows_what_opens_something(who: str, settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world = World()
    secrets = plant(world)
    seen = {path: shown(secrets, plain(answer)) for path, answer in reads(world, world.people[who])}
    assert {path: names for path, names in seen.items() if names} == {} and len(seen) > 40


@pytest.mark.parametrize("who", ["visitor", "stranger", "annotator", "adjudicator"])
def test_no_page_of_who_only_judges_shows_what_opens_something(who: str) -> None:
    world = World()
    secrets = plant(world)
    seen = {path: shown(secrets, plain(page)) for path, page in pages(world, who)}
    # The page of an invitation is opened by its own link.
    own = ("/invitations/", "/accounts/sso/")
    assert {path: names for path, names in seen.items() if names and not path.startswith(own)} == {}


def test_a_token_that_reads_becomes_no_admin(call: Call, client: Client) -> None:
    world = World()
    admin = world.people["admin"]
    members.invite(collection=world.collection, role=Role.ADMIN, author=admin)
    listed = call(admin, "GET", "collections/birds/invitations", scopes=("read",)).json()["items"]
    assert len(listed) == 2 and {one["link"] for one in listed} == {None}
    path = f"collections/birds/invitations/{listed[0]['number']}"
    assert call(admin, "GET", path, scopes=("read", "judge")).json()["link"] is None
    whole = call(admin, "GET", "collections/birds/invitations", scopes=("read", "manage")).json()["items"]
    assert all(one["link"].startswith("http://testserver/invitations/") for one in whole)
    made = call(admin, "POST", "collections/birds/invitations", {"people": ["Bob"]}, scopes=("manage",)).json()
    assert made[0]["link"]


def test_a_receiver_is_known_by_its_host(call: Call) -> None:
    world = World()
    plant(world)
    path, admin = f"collections/birds/webhooks/{world.webhook.number}", world.people["admin"]
    assert call(admin, "GET", path, scopes=("read",)).json()["url"] == "https://ice.example/***"
    assert call(admin, "GET", path).json()["url"] == world.webhook.url
    log = call(admin, "GET", f"{path}/deliveries", scopes=("read",)).json()["items"][0]["attempts"]
    assert [(one["status"], one["answer"]) for one in log] == [(500, "***")]
    assert "planted-path" in call(admin, "GET", f"{path}/deliveries").json()["items"][0]["attempts"][0]["answer"]


def test_what_one_token_read_another_may_change(call: Call) -> None:
    world = World()
    path, admin = f"collections/birds/invitations/{world.invitation.pk}", world.people["admin"]
    etag = call(admin, "GET", path, scopes=("read",))["ETag"]
    assert call(admin, "DELETE", path, scopes=("manage",), **{"If-Match": '"other"'}).status_code == 412
    assert call(admin, "DELETE", path, scopes=("manage",), **{"If-Match": etag}).status_code == 204


def test_every_field_of_the_list_is_one_of_an_answer_that_leaves_it_out() -> None:
    guarded = {one.__name__: one for one in GuardedSchema.__subclasses__()}
    named = {key.split(".")[0] for key in FIELDS}
    assert named == set(guarded)
    for name, schema in guarded.items():
        assert set(fields_of(schema)) <= set(schema.model_fields), name
    assert list(fields_of(InvitationOut)) == ["link"]
    assert AccessToken.TokenScope.MANAGE == "manage"
    assert FIELDS["WebhookOut.url"]("https://user:pass@ice.example:8443/a?b") == "https://ice.example/***"
