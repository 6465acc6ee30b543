"""Mail about what is new in collections, to people who chose it: inboxes to admins, answers to those who asked."""

import html
import logging
from dataclasses import dataclass
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Count, Max
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.html import strip_tags
from django.utils.translation import ngettext

from annotation.access.permissions import administered_collections
from annotation.home.inbox.selectors import Inbox, read_inbox
from annotation.models import InboxMail, Membership, Role, User
from annotation.models.inbox import InboxReader
from annotation.quality.label_quality.statistics import STATISTICS
from annotation.work.threads.selectors import own_threads
from corpus.models import Collection
from jobs.connections import without_connection
from jobs.notifications import redis_client, redis_key

LOOK_S = 30  # All workers together look for news at most so often.
# The least time between two mails about a collection; what comes meanwhile goes into the next one.
PAUSES = {InboxMail.DAILY: timedelta(days=1), InboxMail.ONCE: timedelta(minutes=10)}
BUTTONS = {"skipped", "retake"}  # Lines whose address is that of a form on the Overview.

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MailLine:
    """A line of a mail. `identity`: the same as long as it is the same news."""

    identity: str
    sentence: str
    address: str


def send_inbox_mails() -> None:
    """Mail what is new to everybody who chose it; nothing where this site sends no mail."""
    readers = User.objects.filter(is_active=True).exclude(inbox_mail=InboxMail.NEVER).exclude(email="")
    if not settings.EMAIL_HOST or not readers.exists():
        return
    if not redis_client().set(redis_key("inbox-mails"), 1, nx=True, ex=LOOK_S):
        return
    for user in readers:
        administered = set(administered_collections(user).values_list("pk", flat=True))
        own = user.memberships.filter(is_active=True).values_list("collection", flat=True)
        for collection in Collection.objects.filter(pk__in=administered.union(own)).order_by("name"):
            mail_inbox(user, collection, administers=collection.pk in administered)


def mail_inbox(user: User, collection: Collection, *, administers: bool = True) -> bool:
    """Mail what is new for a person in a collection, once; return whether a mail was sent.

    1. Wait for the pause that the person chose.
    2. Compare the inbox with what was mailed before and is still in it.
    3. Store what is mailed before it is sent, so that of two workers one sends it; a refused mail is tried again.
    """
    now, reader = timezone.now(), InboxReader.objects.get_or_create(user=user, collection=collection)[0]
    if reader.mailed_at and now - reader.mailed_at < PAUSES[InboxMail(user.inbox_mail)]:
        return False
    member = Membership.objects.filter(user=user, collection=collection, is_active=True).first()
    with translation.override(user.language or settings.LANGUAGE_CODE):
        lines = list_reply_lines(member, collection) if member else []
        if administers:
            adjudicates = member is not None and member.role >= Role.ADJUDICATOR
            box = read_inbox(collection, user, judges=member is not None, adjudicates=adjudicates)
            if box.needs_statistics:
                STATISTICS.refresh(collection)
            lines = list_lines(collection, box) + lines
        news = [line for line in lines if line.identity not in reader.mailed]
        identities = [line.identity for line in lines]
        rows = InboxReader.objects.filter(pk=reader.pk, mailed_at=reader.mailed_at)
        if not news:
            # What is settled and comes again is news.
            rows.update(mailed=[identity for identity in reader.mailed if identity in identities])
            return False
        if not rows.update(mailed=identities, mailed_at=now):
            return False
        title = " ".join((collection.title or collection.name).split())
        subject = ngettext("%(title)s: %(count)s thing is new", "%(title)s: %(count)s things are new", len(news))
        text = render_to_string("inbox/mail.txt", {"lines": news, "site": user.inbox_site})
        subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + subject % {"title": title, "count": len(news)}
        message = EmailMessage(subject, text.strip() + "\n", to=[user.email])
    try:
        with without_connection():
            message.send()
    except (OSError, SMTPException) as error:
        logger.error("A mail about the inbox of %s could not be sent: %s", collection.name, error)
        InboxReader.objects.filter(pk=reader.pk, mailed_at=now).update(mailed=reader.mailed, mailed_at=reader.mailed_at)
        return False
    return True


def list_lines(collection: Collection, box: Inbox) -> list[MailLine]:
    """Return the lines of a collection's inbox as text, in the language that is active."""
    lines, overview = [], reverse("collection", args=[collection.name])
    for item in box.items:
        sentence = html.unescape(strip_tags(render_to_string("dashboard/_attention_words.html", {"item": item})))
        address = overview if item.key in BUTTONS else item.address
        lines.append(MailLine(item.identity, " ".join(sentence.split()), address))
    return lines + [MailLine(work.identity, work.sentence, work.address) for work in box.ended]


def list_reply_lines(member: Membership, collection: Collection) -> list[MailLine]:
    """Return a line about the answers that a member has not read, if there are any."""
    unread = own_threads(member).filter(news_at__gt=member.replies_seen_at)
    news = unread.order_by().aggregate(count=Count("pk"), newest=Max("news_at"))
    if not news["count"]:
        return []
    sentence = ngettext(
        "%(count)s of your comments and flags has a new answer.",
        "%(count)s of your comments and flags have new answers.",
        news["count"],
    )
    address = reverse("replies", args=[collection.name])
    return [MailLine(f"replies {news['newest'].isoformat()}", sentence % {"count": news["count"]}, address)]
