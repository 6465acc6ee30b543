"""The inbox: what ended reaches its count, notices and mails once; what waits is counted; admins alone see it."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from annotation.exports.listing import EXPORT_TASK
from annotation.home.inbox import attention, mails, selectors
from annotation.models import Assignment, AuditEntry, Membership, Role, User
from annotation.models.imports import FileImport
from annotation.models.inbox import InboxReader
from annotation.models.snapshots import Snapshot
from annotation.models.threads import ThreadMessage
from benchmark.models import Gate, Qrels, Report
from corpus.models import Collection, Item
from jobs.models import BackgroundJob
from judges.models import Campaign, Work
from tests.admin_site import audited
from tests.evidence import make_campaign, make_label
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag
from tests.reading import flat
from tests.site.test_numbers import make_gate
from training.models import CurvePoint, Job, LearningCurve

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


@pytest.fixture
def charlie(books: Collection) -> Membership:
    return make_member(books, "charlie", Role.ADMIN)


@pytest.fixture
def client(charlie: Membership) -> Client:
    return client_of(charlie)


def poll(client: Client, **query: Any) -> HttpResponse:
    answer = client.get("/c/books/inbox/", query, headers={"HX-Request": "true"})
    assert answer.status_code in (200, 286)
    return answer


def count(answer: HttpResponse) -> int:
    return int(re.search(r'data-count="(\d+)"', answer.text)[1])


def end(books: Collection, kind: str, *, failed: bool) -> None:
    """One piece of long work that ended now; of its kind the only one."""
    at, user = timezone.now(), books.memberships.get(user__username="charlie").user
    state = "failed" if failed else "ready"
    if kind == "Import":
        FileImport.objects.create(collection=books, owner=user, state=state, dry_run=failed, ended_at=at)
    elif kind == "Export":
        snapshot = Snapshot.objects.create(collection=books, format="csv", folder="/nowhere", state=state)
        BackgroundJob.objects.create(kind=EXPORT_TASK, subject=snapshot.pk, state=state, ended_at=at)
    elif kind == "Report":
        qrels = [Qrels.objects.create(collection=books, number=number) for number in (1, 2)]
        Report.objects.create(collection=books, before=qrels[0], after=qrels[1], key="a", state=state, ended_at=at)
        Report.objects.create(collection=books, before=qrels[0], after=qrels[0], key="b", state=state, ended_at=at)
    elif kind == "Training job":
        state = "failed" if failed else "finished"
        point = Job.objects.create(collection=books, folder="/nowhere", state=state, ended_at=at)
        CurvePoint.objects.create(curve=LearningCurve.objects.create(collection=books), job=point, asked=1)
        Job.objects.create(collection=books, folder="/nowhere", state=state, ended_at=at)
    else:
        make_campaign(books, [], state="finished", finished_at=at)


@pytest.mark.parametrize(
    ("kind", "failed", "sentence"),
    [
        ("Import", False, "Import 1 is finished."), ("Import", True, "Import 1 failed."),
        ("Export", False, "Export 1 is ready."), ("Export", True, "Export 1 failed."),
        ("Report", False, "Report 1 is ready."), ("Report", True, "Report 1 failed."),
        ("Training job", False, "Training job 2 is finished."), ("Training job", True, "Training job 2 failed."),
        ("Campaign", False, "Campaign 1 is finished."),
    ],
)  # fmt: skip
def test_what_ended_is_counted_told_once_and_listed_until_it_is_cleared(books, client, kind, failed, sentence):
    since = timezone.now().isoformat()
    assert count(poll(client)) == 0
    end(books, kind, failed=failed)
    answer = poll(client, since=since)
    assert count(answer) == 1 and answer.text.count('class="toast') == 1 and sentence in answer.text
    assert ("toast failed" in answer.text) == failed
    assert 'class="toast' not in poll(client, since=timezone.now().isoformat()).text
    assert 'class="toast' not in poll(client).text, "the first page of a tab has missed nothing"
    page = client.get("/c/books/").text
    assert sentence in page
    until = re.search(r'name="until" value="([^"]+)"', page)[1]
    assert client.post("/c/books/inbox/seen/", {"until": until}).status_code == 302
    assert sentence not in client.get("/c/books/").text and count(poll(client)) == 0


def test_the_newest_gate_is_listed_if_it_failed(charlie: Membership, client: Client) -> None:
    make_gate(charlie)
    assert count(poll(client)) == 0
    Gate.objects.update(verdict=Gate.Verdict.FAIL, created_at=timezone.now())
    assert count(poll(client)) == 1 and 'href="/c/books/benchmark/gate/1/"' in client.get("/c/books/").text
    make_gate(charlie)
    assert count(poll(client)) == 0


def test_the_page_that_shows_how_work_ended_gets_no_notice_of_it(books: Collection, client: Client) -> None:
    end(books, "Import", failed=True)
    query = {"since": (timezone.now() - timedelta(minutes=1)).isoformat()}
    for address, shown in (("/c/books/import/1/", False), ("/c/books/pairs/", True)):
        page = client.get("/c/books/inbox/", query, headers={"HX-Current-URL": f"http://testserver{address}?a=1"})
        assert ('class="toast' in page.text) == shown


def test_old_ends_are_no_news_and_each_reader_clears_their_own(books: Collection, client: Client) -> None:
    end(books, "Import", failed=False)
    dana = client_of(make_member(books, "dana", Role.ADMIN))
    client.post("/c/books/inbox/seen/", {"until": timezone.now().isoformat()})
    # An older page that is sent later takes nothing back.
    client.post("/c/books/inbox/seen/", {"until": (timezone.now() - timedelta(days=1)).isoformat()})
    client.post("/c/books/inbox/seen/", {"until": "yesterday"})
    assert (count(poll(client)), count(poll(dana))) == (0, 1)
    FileImport.objects.update(ended_at=timezone.now() - selectors.KEPT - timedelta(hours=1))
    assert count(poll(dana)) == 0


def waits(books: Collection) -> None:
    """Something of everything that waits."""
    campaign = make_campaign(books, [], state="budget")
    make_item(make_pair(books), state="conflict")
    make_item(make_pair(books), reason="audit")
    make_item(make_pair(books))
    make_label(make_item(make_pair(books), reason="requested").pair, 1)
    for state in ("failed", "pending"):
        Work.objects.create(campaign=campaign, pair=make_pair(books), state=state, reason="error")


def test_the_count_is_the_length_of_the_list(books: Collection, client: Client) -> None:
    make_member(books, "alice")
    make_member(books, "bob")
    waits(books)
    end(books, "Export", failed=True)
    page = client.get("/c/books/")
    keys = [item.key for item in page.context["board"]["attention"]]
    assert sorted(keys) == ["audits", "budget", "conflicts", "escalated", "failed", "others"]
    assert count(poll(client)) == 7
    assert page.text.count('id="inbox-count"') == 1


def test_a_pair_that_failed_and_was_taken_up_since_has_not_failed(books: Collection) -> None:
    campaign = make_campaign(books, [], state="finished")
    labelled, sent, judged, left = (make_pair(books) for _ in range(4))
    for pair in (labelled, sent, judged, left):
        Work.objects.create(campaign=campaign, pair=pair, state="failed")
    assert attention.read_open_work(books).failed == 4
    make_label(labelled, 1)
    make_item(sent)
    Work.objects.create(campaign=make_campaign(books, []), pair=judged, state="pending")
    assert attention.read_open_work(books).failed == 1
    Campaign.objects.update(state="cancelled")
    assert attention.read_open_work(books).failed == 0


def test_it_stops_asking_when_nothing_goes_on_and_tells_the_page_when_it_changes(books, client):
    quiet = poll(client)
    assert quiet.status_code == 286 and "hx-trigger" not in quiet.text and "HX-Trigger" not in quiet
    campaign = make_campaign(books, [], state="running")
    live = poll(client)
    assert live.status_code == 200 and 'hx-trigger="every 10s"' in live.text
    was = re.search(r"was=(\w+)", live.text)[1]
    assert "HX-Trigger" not in poll(client, was=was)
    make_item(make_pair(books), state="conflict")
    assert poll(client, was=was)["HX-Trigger"] == "inbox-changed"
    Campaign.objects.filter(pk=campaign.pk).update(state="paused", paused_because="v3: 401 invalid key")
    page = html.unescape(flat(client.get("/c/books/").text))
    assert "A provider refused the campaign's calls; 0 pairs are not judged: v3: 401 invalid key" in page
    assert poll(client).status_code == 200, "an adjudicator may settle the conflict"


def test_work_that_goes_on_keeps_it_asking(books: Collection, charlie: Membership, client: Client) -> None:
    for model, values in (
        (FileImport, {"state": "running", "owner": charlie.user}),
        (Job, {"state": "queued", "folder": "/nowhere"}),
        (Snapshot, {"state": "making", "folder": "/nowhere", "format": "csv"}),
    ):
        row = model.objects.create(collection=books, **values)
        assert poll(client).status_code == 200, model
        row.delete()
    assert poll(client).status_code == 286


def test_stored_statistics_are_asked_for_when_people_have_judged_since(books: Collection, client: Client) -> None:
    assert "statistics" not in poll(client).text
    make_campaign(books, [])
    audited(books, right=20, wrong=30)
    item = Item.objects.filter(reason="audit").latest("pk")
    ended = {"state": "done", "lease_until": timezone.now(), "ended_at": timezone.now()}
    Assignment.objects.create(item=item, membership=make_member(books, "alice"), **ended)
    answer = poll(client)
    assert "/statistics/refresh/" in answer.text and count(answer) == 0, "not computed in the poll"
    assert client.post("/c/books/statistics/refresh/", headers={"HX-Request": "true"}).status_code == 204
    answer = poll(client)
    assert count(answer) == 1 and "/statistics/refresh/" not in answer.text
    assert count(answer) == len(client.get("/c/books/").context["board"]["attention"])


def test_nobody_but_admins_gets_it_or_its_weight(books: Collection, client: Client) -> None:
    for role in (Role.ANNOTATOR, Role.ADJUDICATOR):
        other = client_of(make_member(books, role.name.lower(), role))
        for address in ("/c/books/", "/c/books/judge/", "/accounts/"):
            page = other.get(address, follow=True).text
            assert "inbox" not in page and "toast" not in page
    assert 'id="inbox"' in client.get("/c/books/pairs/").text
    assert 'id="inbox"' not in client.get("/c/books/judge/", follow=True).text, "judging is left in peace"


@pytest.fixture
def reader(settings: Any) -> Membership:
    settings.EMAIL_HOST = "127.0.0.1"
    return make_member(make_collection("books", title="Books"), "charlie", Role.ADMIN)


def choose(member: Membership, when: str) -> int:
    User.objects.filter(pk=member.user.pk).update(email=f"{member.user.username}@example.org")
    return client_of(member).post("/accounts/inbox-mail/", {"inbox_mail": when}).status_code


def look(member: Membership, later: timedelta = timedelta()) -> bool:
    """Whether a mail was sent by a look that comes so much later."""
    InboxReader.objects.filter(mailed_at__isnull=False).update(mailed_at=timezone.now() - later)
    administers = member.role == Role.ADMIN
    return mails.mail_inbox(User.objects.get(pk=member.user.pk), member.collection, administers=administers)


def refuse_import(member: Membership) -> None:
    values = {"state": "failed", "ended_at": timezone.now()}
    FileImport.objects.create(collection=member.collection, owner=member.user, **values)


def test_each_event_is_mailed_once_with_its_page(reader: Membership) -> None:
    assert choose(reader, "once") == 302 and not look(reader) and mail.outbox == []
    refuse_import(reader)
    make_item(make_pair(reader.collection), state="conflict")
    assert look(reader)
    (sent,) = mail.outbox
    assert sent.to == ["charlie@example.org"] and sent.subject == "[Quorum] Books: 2 things are new"
    assert "- Import 1 failed.\n  http://testserver/c/books/import/1/\n" in sent.body
    assert "- 1 pair waits for an adjudicator\n" in sent.body and "http://testserver/accounts/" in sent.body
    assert not look(reader, timedelta(days=1)), "nothing is new"
    refuse_import(reader)
    assert not look(reader, timedelta(minutes=9)) and look(reader, timedelta(minutes=11))
    assert "Import 2 failed." in mail.outbox[1].body and "Import 1" not in mail.outbox[1].body
    assert "adjudicator" not in mail.outbox[1].body


def test_a_daily_mail_waits_for_a_day_and_what_was_settled_and_comes_again_is_news(reader: Membership) -> None:
    choose(reader, "daily")
    item = make_item(make_pair(reader.collection), state="conflict")
    assert look(reader)
    Item.objects.update(state="settled")
    assert not look(reader, timedelta(hours=25))
    Item.objects.filter(pk=item.pk).update(state="conflict")
    assert not look(reader, timedelta(hours=23)) and look(reader, timedelta(hours=25))


def test_a_mail_that_was_not_taken_is_sent_later_once(reader: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(reader, "once")
    refuse_import(reader)

    def fail(message: Any) -> None:
        # Meanwhile another worker looks, and finds that the mail is being sent.
        assert not mails.mail_inbox(User.objects.get(pk=reader.user.pk), reader.collection)
        raise ConnectionRefusedError

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", fail)
        assert not mails.mail_inbox(User.objects.get(pk=reader.user.pk), reader.collection)
    assert look(reader) and len(mail.outbox) == 1


def test_workers_send_to_those_who_chose_it_at_most_every_half_minute(reader, settings, instance):
    refuse_import(reader)
    alice, dana = make_member(reader.collection, "alice"), make_member(reader.collection, "dana", Role.ADMIN)
    assert choose(alice, "once") == 302
    User.objects.filter(pk=dana.user.pk).update(email="dana@example.org")
    choose(reader, "once")
    settings.EMAIL_HOST = ""
    mails.send_inbox_mails()
    assert mail.outbox == []
    settings.EMAIL_HOST = "127.0.0.1"
    mails.send_inbox_mails()
    assert [message.to for message in mail.outbox] == [["charlie@example.org"]]
    InboxReader.objects.all().delete()
    mails.send_inbox_mails()
    assert len(mail.outbox) == 1, "another worker looked a moment ago"


def test_an_annotator_is_mailed_answers_to_what_they_wrote_and_nothing_of_the_inbox(reader: Membership) -> None:
    alice, item = make_member(reader.collection, "alice"), make_item(make_pair(reader.collection))
    choose(alice, "daily")
    flag(alice, claim(alice), "Two documents in one.")
    refuse_import(reader)
    assert not look(alice), "it waits for an adjudicator"
    message = ThreadMessage(assignment=item.assignments.get(), written_by=reader.user, text="Which are they?")
    message.save()
    assert look(alice)
    (sent,) = mail.outbox
    assert "1 of your comments and flags has a new answer." in sent.body and "Import" not in sent.body
    assert "http://testserver/c/books/judge/replies/" in sent.body and "Which are they?" not in sent.body
    assert not look(alice, timedelta(days=2)), "it is told once"


def test_it_is_offered_to_members_where_the_site_sends_mail(reader: Membership, settings: Any) -> None:
    words, of_admins = "Mail about your collections", "as on each Overview"
    page = client_of(reader).get("/accounts/").text
    assert words in page and of_admins in page
    page = client_of(make_member(reader.collection, "alice")).get("/accounts/").text
    assert words in page and of_admins not in page
    choose(reader, "daily")
    assert '<option value="daily" selected>' in client_of(reader).get("/accounts/").text
    assert AuditEntry.objects.get(act="account.inbox-mail").details == {"when": "daily"}
    assert client_of(reader).post("/accounts/inbox-mail/", {"inbox_mail": "hourly"}).status_code == 302
    assert User.objects.get(pk=reader.user.pk).inbox_mail == "daily"
    settings.EMAIL_HOST = ""
    assert words not in client_of(reader).get("/accounts/").text and choose(reader, "once") == 404
    assert Collection.objects.count() == 1
