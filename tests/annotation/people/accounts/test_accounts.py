"""Accounts by invitation: signing in and up, joining, what is closed, and the command create_users."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEntry, Invitation, Membership, Role, User
from annotation.people.accounts import members
from corpus.models import Assessor, Collection
from tests.factories import make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough secret"


def invite(collection: Collection, role: Role = Role.ANNOTATOR, **values: object) -> Invitation:
    boss = User.objects.filter(username="boss").first() or make_user("boss", is_owner=True)
    return members.invite(collection=collection, role=role, author=boss, **values)


def sign_up(invitation: Invitation, username: str = "alice", password: str = PASSWORD) -> tuple[Client, object]:
    client = Client()
    values = {"username": username, "password1": password, "password2": password}
    return client, client.post(f"/invitations/{invitation.token}/", values)


def test_alice_signs_in_and_a_wrong_password_keeps_the_name() -> None:
    make_user("alice")
    client = Client()
    wrong = client.post("/accounts/login/", {"login": "alice", "password": "wrong"}).text
    assert 'value="alice"' in wrong and "not correct" in wrong
    response = client.post("/accounts/login/", {"login": "alice", "password": "alice-password"})
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get("/").status_code == 200
    first, later = (Client().get(f"/accounts/login/?next={page}").text for page in ("/", "/c/birds/"))
    assert first.count('role="status"') < later.count('role="status"'), "only who was elsewhere goes on there"


def test_forty_people_sign_in_from_one_address_at_once() -> None:
    for number in range(40):
        make_user(f"p{number}")
    answers = [Client().post("/accounts/login/", {"login": f"p{n}", "password": f"p{n}-password"}) for n in range(40)]
    assert {answer.status_code for answer in answers} == {302}


def test_nobody_signs_up_without_an_invitation() -> None:
    values = {"username": "mallory", "password1": PASSWORD, "password2": PASSWORD}
    for response in (Client().get("/accounts/signup/"), Client().post("/accounts/signup/", values)):
        assert "Invitation required" in response.content.decode()
    assert not User.objects.exists()


def test_what_is_not_wanted_of_allauth_is_not_there() -> None:
    for path in ("email", "password/set", "confirm-email", "social/login", "social/signup", "2fa", "2fa/webauthn"):
        assert Client().get(f"/accounts/{path}/").status_code == 404, path


def test_an_invitation_makes_an_account_with_its_own_assessor(birds: Collection) -> None:
    client, response = sign_up(invite(birds, Role.ADJUDICATOR))
    assert response["Location"] == "/c/birds/"
    member = Membership.objects.get(user__username="alice")
    assert (member.role, member.assessor.name, member.assessor.kind) == (Role.ADJUDICATOR, "alice", "person")
    assert client.get("/c/birds/").status_code == 200
    acts = {"invitation.made", "invitation.accepted", "account.made", "member.joined", "session.in"}
    assert acts <= set(AuditEntry.objects.values_list("act", flat=True))


def test_the_name_of_the_invitation_is_filled_in_where_an_account_can_have_it(birds: Collection) -> None:
    invitation = invite(birds)
    for note, name in (("mia", "mia"), ("cara@site.example", ""), ("Spring course", "")):
        Invitation.objects.filter(pk=invitation.pk).update(note=note)
        form = Client().get(f"/invitations/{invitation.token}/").context["form"]
        assert form["username"].value() == name


def test_a_withdrawn_or_expired_invitation_says_so_and_lets_nobody_in(birds: Collection) -> None:
    withdrawn, expired = invite(birds), invite(birds)
    members.revoke_invitation(invitation=withdrawn)
    Invitation.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    for invitation, word in ((withdrawn, "withdrawn"), (expired, "expired")):
        _, response = sign_up(invitation)
        assert response.status_code == 410 and word in response.content.decode()
    assert Client().get("/invitations/nonsense/").status_code == 404


def test_two_people_with_the_same_link_do_not_both_get_in(birds: Collection) -> None:
    invitation = invite(birds)
    stale = Invitation.objects.get(pk=invitation.pk)
    members.sign_up(invitation=invitation, username="alice", password=PASSWORD)
    with pytest.raises(Exception, match="already been used"):
        members.sign_up(invitation=stale, username="bob", password=PASSWORD)
    assert not User.objects.filter(username="bob").exists()


def test_a_weak_password_or_a_taken_name_keeps_the_form_and_the_invitation(birds: Collection) -> None:
    make_user("Alice")
    invitation = invite(birds)
    for username, password, word in (("alice", PASSWORD, "taken"), ("bob", "short", 'value="bob"')):
        _, response = sign_up(invitation, username, password)
        assert response.status_code == 422 and word in response.content.decode()
    assert members.why_closed(Invitation.objects.get(pk=invitation.pk)) == ""


def test_who_has_an_account_joins_with_it_and_who_was_deactivated_does_not_come_back(birds: Collection) -> None:
    client = Client()
    client.force_login(make_user("bob"))
    link = f"/invitations/{invite(birds).token}/"
    assert "Join as bob" in client.get(link).text
    assert not Membership.objects.exists(), "a GET joins nobody"
    assert client.post(link)["Location"] == "/c/birds/judge/?start"
    bob = Membership.objects.get()
    assert bob.user.username == "bob"
    members.set_active(membership=bob, active=False)
    another = invite(birds)
    assert client.post(f"/invitations/{another.token}/").status_code == 409
    assert client.get("/c/birds/").status_code == 404
    assert members.why_closed(Invitation.objects.get(pk=another.pk)) == ""


def run(*arguments: str) -> list[dict[str, str]]:
    out = StringIO()
    call_command("create_users", *arguments, stdout=out)
    return json.loads(out.getvalue())


def test_create_users_prints_names_that_nobody_has_and_passwords_that_work(birds: Collection) -> None:
    make_user("Annotator-2")
    made = run("birds", "--role", "annotator", "--count", "2")
    assert [sorted(account) for account in made] == [["password", "username"]] * 2
    made += run("birds", "--role", "annotator", "--count", "1", "--json")
    assert [account["username"] for account in made] == ["annotator-1", "annotator-3", "annotator-4"]
    values = {"login": "annotator-1", "password": made[0]["password"]}
    assert Client().post("/accounts/login/", values).status_code == 302
    assert {member.role for member in Membership.objects.all()} == {Role.ANNOTATOR}
    assert Assessor.objects.filter(collection=birds, kind="person").count() == 3
    (owner,) = run("--role", "owner", "--count", "1")
    assert User.objects.get(username=owner["username"]).is_owner


@pytest.mark.parametrize(
    "arguments", [["nowhere", "--role", "annotator"], ["--role", "annotator"], ["birds", "--role", "owner"]]
)
def test_create_users_refuses_bad_input_with_exit_2_and_makes_nobody(arguments, birds, capsys):
    with pytest.raises(SystemExit) as stopped:
        call_command("create_users", *arguments)
    output = capsys.readouterr()
    assert (stopped.value.code, output.out, output.err.count("\n")) == (2, "", 1)
    assert not User.objects.exists()
