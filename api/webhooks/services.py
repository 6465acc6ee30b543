"""Creating, changing, testing, replaying, disabling and deleting webhooks, each with an entry in the audit log."""

import logging
from collections.abc import Collection as Several
from datetime import timedelta
from functools import partial
from smtplib import SMTPException

import httpx2
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Membership, Role, User
from annotation.people.accounts.encryption import encrypt_text
from api.models import Webhook, WebhookAttempt, WebhookDelivery
from api.webhooks.addresses import check_url
from api.webhooks.signing import PURPOSE, make_secret
from corpus.errors import BadInput
from corpus.holding import hold, hold_row
from corpus.models import Collection
from jobs.connections import without_connection
from jobs.notifications import notify
from store.sql import execute, read_sql

TASK = "webhooks.deliver"
# Webhooks of a collection.
MOST = 20
# While both secrets sign: long enough to change the receiver on a working day.
BOTH_SECRETS = timedelta(hours=24)
RETENTION = timedelta(days=30)
# A limit keeps each clean-up short; the next one continues.
DELETED_AT_ONCE = 10_000
State = WebhookDelivery.DeliveryState
logger = logging.getLogger(__name__)
OLD = read_sql(__file__, "delete_old_deliveries")


@transaction.atomic
def create_webhook(
    collection: Collection, user: User, *, url: str, events: Several[str], description: str = ""
) -> tuple[Webhook, str]:
    """Create a webhook; return its row and secret, which is not shown again. Raises BadInput."""
    # Of two people at once, the second waits here and then counts the first one's webhook.
    hold(Collection.objects, collection.pk, no_key=True)
    if Webhook.objects.filter(collection=collection).count() >= MOST:
        raise BadInput(_("This collection has %(most)s webhooks: delete one first.") % {"most": MOST})
    # The audit log names only the host: the path of some services' addresses is itself a secret.
    host = check_url(url).host
    secret = make_secret()
    row = Webhook.objects.create(
        collection=collection,
        made_by=user,
        url=url,
        events=_check_events(events),
        description=description,
        secret=encrypt_text(secret, PURPOSE),
    )
    record(user, "webhook.made", collection, webhook=row.number, host=host, events=row.events)
    return row, secret


@transaction.atomic
def change_webhook(
    row: Webhook,
    user: User,
    *,
    url: str | None = None,
    events: Several[str] | None = None,
    description: str | None = None,
    active: bool | None = None,
) -> None:
    """Change the given fields. Disabling fails pending deliveries, which can be replayed. Raises BadInput, Deleted."""
    hold_row(row)
    if url is not None:
        check_url(url)
        row.url = url
    if events is not None:
        row.events = _check_events(events)
    if description is not None:
        row.description = description
    row.save(update_fields=["url", "events", "description"])
    if active is False and not row.disabled:
        disable_webhook(row, Webhook.Disabled.BY_PERSON, by=user)
    elif active and row.disabled:
        row.disabled, row.failing_since = "", None
        row.save(update_fields=["disabled", "failing_since"])
    host, active = httpx2.URL(row.url).host, not row.disabled
    record(user, "webhook.changed", row.collection, webhook=row.number, host=host, events=row.events, active=active)


def _check_events(events: Several[str]) -> list[str]:
    ordered = [event for event in Webhook.Event.values if event in events]
    if not ordered or len(ordered) != len(set(events)):
        raise BadInput(_("Choose one or more of these events: %(known)s.") % {"known": ", ".join(Webhook.Event.values)})
    return ordered


@transaction.atomic
def replace_secret(row: Webhook, user: User) -> str:
    """Give a webhook a new secret and return it. The former one also signs for 24 hours."""
    hold_row(row)
    secret = make_secret()
    row.former_secret, row.former_secret_until = row.secret, timezone.now() + BOTH_SECRETS
    row.secret = encrypt_text(secret, PURPOSE)
    row.save(update_fields=["secret", "former_secret", "former_secret_until"])
    record(user, "webhook.secret", row.collection, webhook=row.number)
    return secret


@transaction.atomic
def delete_webhook(row: Webhook, user: User) -> None:
    """Delete a webhook with its log."""
    # Locked before its deliveries, as in `record_answer`: another order could deadlock.
    hold_row(row)
    record(user, "webhook.deleted", row.collection, webhook=row.number, host=httpx2.URL(row.url).host)
    WebhookAttempt.objects.filter(delivery__webhook=row).delete()
    row.delete()


@transaction.atomic
def send_test(row: Webhook, user: User) -> WebhookDelivery:
    """Write a test event. Raises BadInput for a disabled webhook, and Deleted."""
    # Only this lock keeps the webhook from being deleted: deliveries have no foreign key to it (ADR 0091).
    hold_row(row)
    _refuse_disabled(row)
    delivery = WebhookDelivery.objects.create(
        webhook=row, event=WebhookDelivery.TEST, subject=f"webhook:{row.pk}", data={"webhook": row.number}
    )
    record(user, "webhook.tested", row.collection, webhook=row.number)
    # After the commit, since before it a worker would find nothing due.
    transaction.on_commit(partial(notify, TASK))
    return delivery


@transaction.atomic
def replay_deliveries(row: Webhook, user: User, rows: QuerySet[WebhookDelivery]) -> int:
    """Send ended deliveries again, with their ids; return how many. Raises BadInput and Deleted."""
    hold_row(row)
    _refuse_disabled(row)
    ended = rows.filter(webhook=row).exclude(state=State.PENDING)
    count = ended.update(state=State.PENDING, attempts=0, due_at=Now(), ended_at=None)
    record(user, "webhook.replayed", row.collection, webhook=row.number, deliveries=count)
    transaction.on_commit(partial(notify, TASK))
    return count


def _refuse_disabled(row: Webhook) -> None:
    if row.disabled:
        raise BadInput(_("This webhook is disabled: enable it first."))


@transaction.atomic
def disable_webhook(row: Webhook, reason: str, *, by: User | None = None) -> None:
    """Disable a webhook and fail its pending deliveries, which can be replayed. Without `by`, admins are mailed."""
    row.disabled = reason
    row.save(update_fields=["disabled"])
    pending = WebhookDelivery.objects.filter(webhook=row, state=State.PENDING)
    # Pending ones would be sent weeks later, when somebody enables the webhook.
    pending.update(state=State.FAILED, ended_at=Now())
    if by is None:
        record(None, "webhook.disabled", row.collection, webhook=row.number, because=reason)
        # After the commit, so that a slow mail server does not keep the webhook locked.
        transaction.on_commit(partial(_mail_admins, row))


def _mail_admins(row: Webhook) -> None:
    """Mail the collection's admins and the webhook's author, if this site sends mail."""
    if not settings.EMAIL_HOST:
        return
    admins = Membership.objects.filter(collection=row.collection, role=Role.ADMIN, is_active=True).values("user")
    recipients = User.objects.filter(Q(pk__in=admins) | Q(pk=row.made_by_id), is_active=True).exclude(email="")
    for person in recipients:
        # A worker has no request from which to take the language.
        with translation.override(person.language or settings.LANGUAGE_CODE):
            title = _("A webhook of “%(name)s” was disabled") % {"name": row.collection.name}
            subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + title
            text = render_to_string("webhooks/disabled_mail.txt", {"webhook": row, "person": person}).strip() + "\n"
        try:
            with without_connection():
                EmailMessage(subject, text, to=[person.email]).send()
        except (OSError, SMTPException) as error:
            # A failed mail must not undo the change, which the page and the audit log show.
            logger.error("The mail about %s could not be sent: %s", row, error)


def delete_old_deliveries() -> int:
    """Delete deliveries that ended 30 days ago or lost their webhook, at most DELETED_AT_ONCE; return how many."""
    return execute(OLD, before=timezone.now() - RETENTION, most=DELETED_AT_ONCE)
