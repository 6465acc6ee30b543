"""Mail about the inbox: only to admins who chose it, only where the site sends mail, and no event twice."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from annotation.home.inbox import mails
from annotation.models import AuditEntry, Membership, Role, User
from annotation.models.imports import FileImport
from annotation.models.inbox import InboxReader
from annotation.models.threads import ThreadMessage
from corpus.models import Collection, Item
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag

pytestmark = pytest.mark.django_db


@pytest.fixture
def charlie(settings: Any) -> Membership:
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


def test_each_event_is_mailed_once_with_its_page(charlie: Membership) -> None:
    assert choose(charlie, "once") == 302 and not look(charlie) and mail.outbox == []
    refuse_import(charlie)
    make_item(make_pair(charlie.collection), state="conflict")
    assert look(charlie)
    (sent,) = mail.outbox
    assert sent.to == ["charlie@example.org"] and sent.subject == "[Quorum] Books: 2 things are new"
    assert "- Import 1 failed.\n  http://testserver/c/books/import/1/\n" in sent.body
    assert "- 1 pair waits for an adjudicator\n" in sent.body and "http://testserver/accounts/" in sent.body
    assert not look(charlie, timedelta(days=1)), "nothing is new"
    refuse_import(charlie)
    assert not look(charlie, timedelta(minutes=9)) and look(charlie, timedelta(minutes=11))
    assert "Import 2 failed." in mail.outbox[1].body and "Import 1" not in mail.outbox[1].body
    assert "adjudicator" not in mail.outbox[1].body


def test_a_daily_mail_waits_for_a_day_and_what_was_settled_and_comes_again_is_news(charlie: Membership) -> None:
    choose(charlie, "daily")
    item = make_item(make_pair(charlie.collection), state="conflict")
    assert look(charlie)
    Item.objects.update(state="settled")
    assert not look(charlie, timedelta(hours=25))
    Item.objects.filter(pk=item.pk).update(state="conflict")
    assert not look(charlie, timedelta(hours=23)) and look(charlie, timedelta(hours=25))


def test_a_mail_that_was_not_taken_is_sent_later_once(charlie: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(charlie, "once")
    refuse_import(charlie)

    def fail(message: Any) -> None:
        # Meanwhile another worker looks, and finds that the mail is being sent.
        assert not mails.mail_inbox(User.objects.get(pk=charlie.user.pk), charlie.collection)
        raise ConnectionRefusedError

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", fail)
        assert not mails.mail_inbox(User.objects.get(pk=charlie.user.pk), charlie.collection)
    assert look(charlie) and len(mail.outbox) == 1


def test_workers_send_to_those_who_chose_it_at_most_every_half_minute(charlie, settings, instance):
    refuse_import(charlie)
    alice, dana = make_member(charlie.collection, "alice"), make_member(charlie.collection, "dana", Role.ADMIN)
    assert choose(alice, "once") == 302
    User.objects.filter(pk=dana.user.pk).update(email="dana@example.org")
    choose(charlie, "once")
    settings.EMAIL_HOST = ""
    mails.send_inbox_mails()
    assert mail.outbox == []
    settings.EMAIL_HOST = "127.0.0.1"
    mails.send_inbox_mails()
    assert [message.to for message in mail.outbox] == [["charlie@example.org"]]
    InboxReader.objects.all().delete()
    mails.send_inbox_mails()
    assert len(mail.outbox) == 1, "another worker looked a moment ago"


def test_an_annotator_is_mailed_answers_to_what_they_wrote_and_nothing_of_the_inbox(charlie: Membership) -> None:
    alice, item = make_member(charlie.collection, "alice"), make_item(make_pair(charlie.collection))
    choose(alice, "daily")
    flag(alice, claim(alice), "Two documents in one.")
    refuse_import(charlie)
    assert not look(alice), "it waits for an adjudicator"
    message = ThreadMessage(assignment=item.assignments.get(), written_by=charlie.user, text="Which are they?")
    message.save()
    assert look(alice)
    (sent,) = mail.outbox
    assert "1 of your comments and flags has a new answer." in sent.body and "Import" not in sent.body
    assert "http://testserver/c/books/judge/replies/" in sent.body and "Which are they?" not in sent.body
    assert not look(alice, timedelta(days=2)), "it is told once"


def test_it_is_offered_to_members_where_the_site_sends_mail(charlie: Membership, settings: Any) -> None:
    words, of_admins = "Mail about your collections", "as on each Overview"
    page = client_of(charlie).get("/accounts/").text
    assert words in page and of_admins in page
    page = client_of(make_member(charlie.collection, "alice")).get("/accounts/").text
    assert words in page and of_admins not in page
    choose(charlie, "daily")
    assert '<option value="daily" selected>' in client_of(charlie).get("/accounts/").text
    assert AuditEntry.objects.get(act="account.inbox-mail").details == {"when": "daily"}
    assert client_of(charlie).post("/accounts/inbox-mail/", {"inbox_mail": "hourly"}).status_code == 302
    assert User.objects.get(pk=charlie.user.pk).inbox_mail == "daily"
    settings.EMAIL_HOST = ""
    assert words not in client_of(charlie).get("/accounts/").text and choose(charlie, "once") == 404
    assert Collection.objects.count() == 1
