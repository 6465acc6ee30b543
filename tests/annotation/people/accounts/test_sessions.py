"""Where somebody is signed in, ending sessions, lockout, password links, mail, and what owners do to accounts."""

import re

import pytest
from allauth.account.utils import user_pk_to_url_str
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import CharField
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Assignment, AuditEntry, Invitation, Membership, Role, User
from annotation.models.imports import FileImport
from annotation.models.snapshots import QuerySplit
from annotation.people.accounts import sessions, site_accounts
from benchmark.models.runs import Run
from corpus.errors import BadInput
from corpus.models import Assessor, Judgment, Target
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair, make_user
from tests.rankings import make_run

pytestmark = pytest.mark.django_db
NEW = "a long enough secret"


def sign_in(username: str = "alice", password: str = "", **headers: str) -> Client:
    client = Client(headers=headers)
    client.post("/accounts/login/", {"login": username, "password": password or f"{username}-password"})
    return client


def inside(client: Client) -> bool:
    return client.get("/accounts/").status_code == 200


def as_user(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Safari/604.1"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 (KHTML, like Gecko) {} Safari/604.1"
ANDROID = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537 (KHTML, like Gecko) Chrome/139.0.0.0 Mobile Safari/537{}"


def test_sessions_are_listed_and_one_is_ended_from_elsewhere_by_their_own_person() -> None:
    make_user("alice")
    make_user("bob")
    here, phone = sign_in(**{"User-Agent": FIREFOX}), sign_in(**{"User-Agent": SAFARI})
    page = here.get("/accounts/").text
    assert "Firefox · Linux" in page and "Safari · iPhone" in page and "this device" in page
    (end,) = re.findall(r'action="(/accounts/sessions/\d+/end/)"', page)
    assert sign_in("bob").post(end).status_code == 404 and inside(phone)
    assert here.post(end).status_code == 302
    assert inside(here) and not inside(phone)
    assert AuditEntry.objects.filter(act="session.ended", person__username="alice").count() == 1


def test_signing_out_everywhere_else_and_a_changed_password_leave_this_session() -> None:
    make_user("alice")
    here, there, elsewhere = sign_in(), sign_in(), sign_in()
    (message,) = here.post("/accounts/sessions/end/", follow=True).context["messages"]
    assert "2" in str(message)
    assert [inside(client) for client in (here, there, elsewhere)] == [True, False, False]
    there = sign_in()
    values = {"oldpassword": "alice-password", "password1": NEW, "password2": NEW}
    assert here.post("/accounts/password/change/", values)["Location"] == "/accounts/"
    assert (inside(here), inside(there)) == (True, False)
    assert len(re.findall(">this device<", here.get("/accounts/").text)) == 1
    assert here.get("/accounts/logout/").status_code == 200 and inside(here), "signing out takes a POST"
    here.post("/accounts/logout/")
    assert not inside(here) and inside(sign_in(password=NEW))


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox · Linux"),
        (SAFARI, "Safari · iPhone"),
        (IPHONE.format("CriOS/139.0.7258.76 Mobile/15E148"), "Chrome · iPhone"),
        (IPHONE.format("FxiOS/141.2 Mobile/15E148"), "Firefox · iPhone"),
        (IPHONE.format("Version/18.0 EdgiOS/139.0.3405.86 Mobile/15E148"), "Edge · iPhone"),
        (ANDROID.format(""), "Chrome · Android"),
        (ANDROID.format(" EdgA/139.0.0.0"), "Edge · Android"),
        (ANDROID.format(" OPR/90.0.0.0"), "Opera · Android"),
        ("curl/8.5", ""),
        ("<script>alert(1)</script>", ""),
    ],
)
def test_a_browser_is_named_only_by_known_words(agent: str, words: str) -> None:
    assert sessions.describe_browser_and_system(agent) == words


def wrong(count: int, username: str = "alice", **headers: str) -> object:
    for _ in range(count):
        answer = Client(headers=headers).post("/accounts/login/", {"login": username, "password": "wrong"})
    return answer


def test_five_wrong_passwords_lock_the_account_with_a_page_and_one_line_in_the_log() -> None:
    alice = make_user("alice")
    assert wrong(5).status_code == 200
    locked = Client().post("/accounts/login/", {"login": "ALICE", "password": "alice-password"})
    assert (locked.status_code, locked["Retry-After"]) == (429, "300")
    assert "blocked for 5 minutes" in locked.content.decode()
    make_user("bob")
    assert inside(sign_in("bob")) and not inside(sign_in("alice")), "others sign in meanwhile"
    wrong(3)
    assert AuditEntry.objects.filter(act="session.locked", concerns=alice).count() == 1
    assert AuditEntry.objects.filter(act="session.failed", concerns=alice).count() == 5


def test_another_spelling_of_the_address_does_not_give_more_tries(settings) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
    make_user("alice")
    for port in range(5):
        wrong(1, host=f"localhost:{8000 + port}")
    assert wrong(1, host="127.0.0.1").status_code == 429


def test_what_was_typed_is_not_in_the_log() -> None:
    make_user("alice")
    Client().post("/accounts/login/", {"login": "my-password-by-mistake", "password": "hunter2-hunter2"})
    told = str(list(AuditEntry.objects.values()))
    assert "my-password-by-mistake" not in told and "hunter2" not in told
    entry = AuditEntry.objects.get(act="session.failed")
    assert entry.concerns is None and entry.details == {"address": "127.0.0.0/24"}


def link_from(answer) -> str:
    (link,) = re.findall(r'id="link" value="http://testserver([^"]+)"', answer.content.decode())
    return str(link)


def use(link: str, password: str = NEW) -> object:
    client = Client()
    form = client.get(link)
    if form.status_code != 302:
        return form
    return client.post(form["Location"], {"password1": password, "password2": password})


def test_a_link_of_an_owner_sets_a_new_password_once_and_opens_a_locked_door() -> None:
    alice = make_user("alice")
    signed_in = sign_in()
    wrong(6)
    owner = as_user(make_user("boss", is_owner=True))
    link = link_from(owner.post(f"/people/{alice.pk}/password/"))
    assert inside(signed_in), "the old password works until the link is used"
    assert use(link)["Location"] == "/accounts/password/reset/done/"
    assert not inside(signed_in) and not inside(sign_in()) and inside(sign_in(password=NEW))
    assert "no longer works" in use(link, "another-long-secret").content.decode()
    acts = list(AuditEntry.objects.filter(act__startswith="password.").order_by("pk").values_list("act", flat=True))
    assert acts == ["password.link", "password.reset"]
    assert link.rstrip("/").rpartition("-")[2] not in str(list(AuditEntry.objects.values()))


def test_a_class_chooses_its_passwords_by_links_from_one_address() -> None:
    owner = as_user(make_user("olga", is_owner=True))
    for number in range(32):
        person = make_user(f"pupil-{number}")
        assert use(link_from(owner.post(f"/people/{person.pk}/password/"))).status_code == 302


def test_a_link_older_than_a_day_or_altered_does_nothing(settings) -> None:
    alice, bob = make_user("alice"), make_user("bob")
    owner = as_user(make_user("boss", is_owner=True))
    link = link_from(owner.post(f"/people/{alice.pk}/password/"))
    mine, theirs = user_pk_to_url_str(alice), user_pk_to_url_str(bob)
    assert "no longer works" in use(link.replace(f"/{mine}-", f"/{theirs}-")).content.decode()
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert "no longer works" in use(link).content.decode()
    assert inside(sign_in())


def test_admins_hand_links_only_to_members_whom_they_rule_over_entirely() -> None:
    birds, stones = make_collection("birds"), make_collection("stones")
    admin = make_member(birds, "charlie", Role.ADMIN)
    alice, bob = make_member(birds, "alice"), make_member(birds, "bob")
    make_member(stones, "bob")
    make_user("boss", is_owner=True)
    owner = make_member(birds, "boss", Role.ADMIN)
    client = as_user(admin.user)
    answers = {
        name: client.post(f"/c/birds/members/{member.pk}/password/").status_code
        for name, member in {"alice": alice, "bob": bob, "charlie": admin, "boss": owner}.items()
    }
    assert answers == {"alice": 200, "bob": 409, "charlie": 409, "boss": 409}
    assert as_user(alice.user).post(f"/c/birds/members/{bob.pk}/password/").status_code == 403


def give_address(client: Client, email: str, password: str = "alice-password") -> object:
    return client.post("/accounts/mail/", {"email": email, "password": password})


def ask_for_mail(email: str) -> object:
    return Client().post("/accounts/password/reset/", {"email": email})


def test_a_forgotten_password_is_set_anew_by_mail_and_strangers_learn_of_no_account(settings, mailoutbox) -> None:
    settings.EMAIL_HOST = "127.0.0.1"
    make_user("alice")
    assert give_address(sign_in(), "alice@example.org").status_code == 302
    answers = [ask_for_mail("Alice@example.org"), ask_for_mail("nobody@example.org")]
    (message,) = mailoutbox
    assert message.to == ["alice@example.org"]
    assert message.subject.startswith("[Quorum] ") and "password" in message.subject
    (link,) = re.findall(r"http://testserver(\S+)", message.body)
    assert use(link).status_code == 302
    assert inside(sign_in(password=NEW))
    settings.EMAIL_BACKEND, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", 9
    answers.append(ask_for_mail("alice@example.org"))  # while the mail server is away
    assert {answer.status_code for answer in answers} == {302} and len({answer["Location"] for answer in answers}) == 1


def test_without_a_mail_server_the_page_says_whom_to_ask() -> None:
    for answer in (Client().get("/accounts/password/reset/"), Client().post("/accounts/password/reset/", {})):
        assert answer.status_code == 200 and 'name="email"' not in answer.content.decode()
        assert "Ask an administrator" in answer.content.decode()


def test_a_mail_address_takes_the_password(settings) -> None:
    alice = make_user("alice")
    client = sign_in()
    assert give_address(client, "alice@example.org").status_code == 404, "no mail server: no address"
    settings.EMAIL_HOST = "127.0.0.1"
    assert give_address(client, "alice@example.org", "wrong").status_code == 422
    assert give_address(client, "x\r\nBcc: all@example.org").status_code == 422
    alice.refresh_from_db()
    assert alice.email == ""


def test_a_closed_account_is_out_at_once_and_its_open_pair_goes_back() -> None:
    birds = make_collection("birds")
    alice, boss = make_member(birds, "alice"), make_user("boss", is_owner=True)
    item = make_item(make_pair(birds))
    client = sign_in()
    assert client.post("/c/birds/judge/next/").status_code in (200, 303)
    assert Assignment.objects.get().state == "open"
    as_user(boss).post(f"/people/{alice.user.pk}/stop/")
    assert not inside(client) and not inside(sign_in())
    item.refresh_from_db()
    assert (Assignment.objects.get().state, item.taken) == ("returned", 0)
    as_user(boss).post(f"/people/{alice.user.pk}/start/")
    assert inside(sign_in())


def test_a_pseudonymised_person_is_gone_and_the_judgments_stay() -> None:
    birds = make_collection("birds")
    alice, boss = make_member(birds, "alice"), make_user("boss", is_owner=True)
    User.objects.filter(pk=alice.user.pk).update(email="alice@example.org")
    client = sign_in()
    note = {"note": "Alice Miller", "expires_at": "2030-01-01T00:00Z"}
    Invitation.objects.create(collection=birds, invited_by=boss, accepted_by=alice.user, **note)
    make_judgment(make_pair(birds), alice.assessor, 1)
    with CaptureQueriesContext(connection) as queries:
        site_accounts.pseudonymise(alice.user, by=boss)
    reads = [query["sql"] for query in queries.captured_queries if query["sql"].startswith("SELECT")]
    assert sum('FROM "usersessions_usersession"' in sql for sql in reads) == 1, "sessions are ended once"
    person = User.objects.get(pk=alice.user.pk)
    assert person.username == f"person-{person.pk}" and person.email == "" and not person.is_active
    assert Judgment.objects.get().assessor.name == person.username
    assert Invitation.objects.get().note == ""
    assert not inside(client) and not inside(sign_in())
    page = as_user(boss).get("/audit-log/").text
    assert person.username in page and "alice" not in page, "the audit log names people by reference"
    with pytest.raises(BadInput, match="Send a new invitation"):
        site_accounts.reopen_account(person, by=boss)


def test_no_table_keeps_the_name_and_a_pseudonym_that_somebody_has_already_gets_a_number() -> None:
    birds = make_collection("birds")
    alice, boss = make_member(birds, "alice"), make_user("boss", is_owner=True)
    make_user(f"Person-{alice.user.pk}")
    make_assessor(birds, f"person-{alice.user.pk}-2")
    text = {"pair": make_pair(birds), "version": 1, "kind": "person", "good": True}
    Target.objects.create(**text, writer="alice", contribution="It tells of birds.")
    FileImport.objects.create(collection=birds, owner=alice.user, made_by="alice")
    for name, maker in (("test", "alice"), ("dev", "bob")):
        QuerySplit.objects.create(collection=birds, name=name, query_ids=[f"q-{name}"], made_by=maker)
    make_run(birds, "bm25", {})
    Run.objects.update(made_by="alice")
    assert as_user(boss).post(f"/people/{alice.user.pk}/pseudonymise/").status_code == 302
    new = User.objects.get(pk=alice.user.pk).username
    assert new == f"person-{alice.user.pk}-3" == Assessor.objects.get(membership=alice).name
    assert Target.objects.get().writer == new, "texts forget the name too"
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        Target.objects.update(writer="bob")
    assert FileImport.objects.get().made_by == Run.objects.get().made_by == new
    assert dict(QuerySplit.objects.values_list("name", "made_by")) == {"test": new, "dev": "bob"}
    # No table that keeps a name is append-only: the update of one would fail.
    fields = [field for model in apps.get_models() for field in model._meta.concrete_fields]
    for model in {field.model for field in fields if field.name == "made_by" and isinstance(field, CharField)}:
        assert not any(trigger.name == "append_only" for trigger in getattr(model._meta, "triggers", ())), model


@pytest.mark.parametrize("act", ["stop", "remove-second-factor", "unmake-owner", "pseudonymise"])
def test_owners_do_not_lock_themselves_out(act: str) -> None:
    boss = make_user("boss", is_owner=True)
    client = as_user(boss)
    assert "No changes made" in client.post(f"/people/{boss.pk}/{act}/", follow=True).content.decode()
    boss.refresh_from_db()
    assert boss.is_active and boss.is_owner and boss.username == "boss"


def test_the_people_of_the_site_are_found_and_paged(django_assert_max_num_queries) -> None:
    boss = make_user("boss", is_owner=True)
    for number in range(120):
        User.objects.create(username=f"p{number:03}")
    client = as_user(boss)
    seen, address = [], "/people/"
    while address:
        with django_assert_max_num_queries(8):
            page = client.get(address).content.decode()
        seen += re.findall(r'<th scope="row" class="full nowrap">(\w+)', page)
        nexts = re.findall(r'href="(\?search=&amp;after=[^"]+)"', page)
        address = "/people/" + nexts[0].replace("&amp;", "&") if nexts else ""
    assert seen == ["boss", *[f"p{number:03}" for number in range(120)]]
    assert "p007" in client.get("/people/?search=P007").content.decode()


def test_a_page_reads_session_account_and_membership_once_and_whoever_left_gets_none() -> None:
    make_member(make_collection("books"), "alice")
    alice, tables = sign_in(), ["django_session", "annotation_user", "annotation_membership"]
    with CaptureQueriesContext(connection) as queries:
        assert alice.get("/c/books/judge/").status_code == 200
    reads = [table for query in queries.captured_queries for table in tables if f'FROM "{table}"' in query["sql"]]
    assert reads == tables
    UserSession.objects.update(user=make_user("bob"))
    assert alice.get("/c/books/judge/").wsgi_request.user.username == "alice"
    Membership.objects.update(is_active=False)
    assert alice.get("/c/books/judge/").status_code == 404
