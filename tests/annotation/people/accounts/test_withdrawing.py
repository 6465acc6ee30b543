"""Who loses a right loses what it made, whatever took the right away."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client

from annotation.models import AuditEntry, Membership, Role, User
from annotation.people.accounts import members, site_accounts
from api.models import Webhook
from api.tokens import make_token
from api.webhooks import services
from corpus.models import Collection
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db
JOIN = {"username": "newcomer", "password1": "nine o'clock sharp", "password2": "nine o'clock sharp"}


@dataclass
class Scene:
    """An admin who made one of everything in "birds", and who is an admin of "stones", too."""

    birds: Collection = field(default_factory=lambda: make_collection("birds"))
    stones: Collection = field(default_factory=lambda: make_collection("stones"))

    def __post_init__(self) -> None:
        self.owner = make_user("olga", is_owner=True)
        self.admin = make_member(self.birds, "charlie", Role.ADMIN)
        self.elsewhere = make_member(self.stones, "dora", Role.ADMIN)
        self.alice = make_member(self.birds, "alice").user
        self.made = self.make_all(self.admin.user, self.birds)
        self.kept = self.make_all(self.owner, self.birds) if not isinstance(self, OwnerScene) else {}

    def make_all(self, person: User, collection: Collection) -> dict[str, Any]:
        last = date.today() + timedelta(days=300)
        role = {"collection": collection, "role": Role.ADMIN, "author": person}
        single = members.invite(**role)
        shared = members.make_reusable_link(collection, person, Role.ADMIN, note="n", limit=50, last_day=last)
        every = ["read", "judge", "manage"]
        token = make_token(person, collection, name="n", scopes=every, days=9)[1]
        hook = services.create_webhook(collection, person, url="https://ice.example/h", events=["export.ready"])[0]
        client = Client()
        client.force_login(person)
        alice = Membership.objects.get(user=self.alice)
        page = client.post(f"/c/{collection.name}/members/{alice.pk}/password/")
        return {"links": [single, shared], "token": token, "hook": hook, "password": page.context["link"]}

    def holds(self, made: dict[str, Any]) -> dict[str, bool]:
        """What still opens something."""
        name, token = made["hook"].collection.name, {"Authorization": f"Bearer {made['token']}"}
        first, second = (Client().get(f"/invitations/{row.token}/").status_code == 200 for row in made["links"])
        api = Client().get(f"/api/v1/collections/{name}/members", headers=token).status_code
        hook = not Webhook.objects.get(pk=made["hook"].pk).disabled
        chosen = Client().get(made["password"].removeprefix("http://testserver"), follow=True)
        is_asked = b"password1" in chosen.content
        return {"one": first, "many": second, "token": api == 200, "hook": hook, "password": is_asked}


class OwnerScene(Scene):
    """The same, made by an owner who is no member."""


def by_page(path: str, **body: str) -> Callable[[Scene], None]:
    def do(scene: Scene) -> None:
        client = Client()
        client.force_login(scene.owner)
        address = path.replace("MEMBER", str(scene.admin.pk)).replace("USER", str(scene.admin.user_id))
        assert client.post(address, body).status_code == 302

    return do


def by_operation(method: str, body: object = None) -> Callable[[Scene], None]:
    def do(scene: Scene) -> None:
        token = make_token(scene.owner, None, name="n", scopes=["manage"], days=1)[1]
        path = f"/api/v1/collections/birds/members/{scene.admin.pk}"
        sent = {} if body is None else {"data": body, "content_type": "application/json"}
        answer = getattr(Client(), method)(path, headers={"Authorization": f"Bearer {token}"}, **sent)
        assert answer.status_code == 200, answer.content

    return do


WAYS = {
    "the page makes an annotator": by_page("/c/birds/members/MEMBER/role/", role="1", confirm="1"),
    "the page makes an adjudicator": by_page("/c/birds/members/MEMBER/role/", role="2", confirm="1"),
    "the page ends the membership": by_page("/c/birds/members/MEMBER/active/", active="0"),
    "PATCH makes an annotator": by_operation("patch", {"role": "annotator"}),
    "PATCH ends the membership": by_operation("patch", {"active": False}),
    "DELETE": by_operation("delete"),
    "an owner closes the account": by_page("/people/USER/stop/"),
    "an owner pseudonymises": by_page("/people/USER/pseudonymise/"),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_loses_a_right_loses_what_it_made(way: str) -> None:
    scene = Scene()
    assert set(scene.holds(scene.made).values()) == {True}
    assert set(scene.holds(scene.kept).values()) == {True}
    # The last two ways into alice's account are those of two people: the later of them holds as long as the first.
    WAYS[way](scene)
    left = scene.holds(scene.made)
    assert set(left.values()) == {False}, left
    assert Client().post(f"/invitations/{scene.made['links'][1].token}/", JOIN).status_code == 410
    assert not User.objects.filter(username="newcomer").exists()
    others = scene.holds(scene.kept)
    assert all(others[name] for name in ("one", "many", "token", "hook"))
    acts = AuditEntry.objects.filter(person=scene.owner, concerns=scene.admin.user_id).values_list("act", flat=True)
    assert {"invitation.revoked", "token.revoked", "webhook.changed"} <= set(acts)
    assert list(acts).count("invitation.revoked") == 2


def test_an_owner_who_is_none_any_more_keeps_what_an_admin_may() -> None:
    scene = OwnerScene()
    olga = scene.owner
    mine = scene.make_all(olga, scene.birds)
    make_member(scene.stones, "olga", Role.ADMIN)
    there = members.invite(collection=scene.stones, role=Role.ANNOTATOR, author=olga)
    told = str(site_accounts.remove_owner_role(olga, by=make_user("other", is_owner=True)))
    assert set(scene.holds(mine).values()) == {False}
    assert Client().get(f"/invitations/{there.token}/").status_code == 200
    assert re.findall(r"\d \w+", told) == ["2 invitations", "1 password", "1 access", "1 webhook"]


def test_an_admin_elsewhere_keeps_what_belongs_there() -> None:
    scene = Scene()
    charlie = scene.admin.user
    members.add_member(user=charlie, collection=scene.stones, role=Role.ADMIN)
    there = members.invite(collection=scene.stones, role=Role.ADMIN, author=charlie)
    everywhere = make_token(charlie, None, name="n", scopes=["manage", "read"], days=9)[1]
    reading = make_token(charlie, scene.birds, name="n", scopes=["read", "judge"], days=9)[1]
    members.change_role(membership=scene.admin, role=Role.ANNOTATOR, by=scene.owner)
    assert Client().get(f"/invitations/{there.token}/").status_code == 200

    def status(token: str, path: str) -> int:
        return Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"}).status_code

    assert status(everywhere, "collections/stones/members") == 200
    assert status(everywhere, "collections/birds/members") == 403
    # What an annotator may have, they keep.
    assert status(reading, "collections/birds") == 200


def test_a_higher_role_or_a_new_membership_takes_nothing() -> None:
    scene = Scene()
    members.change_role(membership=scene.admin, role=Role.ADMIN, by=scene.owner)
    members.set_active(membership=scene.admin, active=True, by=scene.owner)
    assert set(scene.holds(scene.made).values()) == {True}
