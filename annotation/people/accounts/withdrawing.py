"""Who loses a right loses what it made, or would come back by a link of their own; the audit log has each line."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.dispatch import Signal
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.access.audit_log.recording import record
from annotation.access.permissions import administered_collections
from annotation.models import AuditEntry, Invitation, User

# Sent with `person` and `by`. A receiver takes back what its app keeps of the person's, and returns
# how much, as {"webhooks": 1}: annotation imports no app above it.
rights_lost = Signal()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """How much was taken back with a right."""

    invitations: int = 0
    links: int = 0
    tokens: int = 0
    webhooks: int = 0

    def __str__(self) -> str:
        """Say what was taken back, in a sentence; "" for nothing."""
        parts = [
            (self.invitations, ngettext("%(n)s invitation", "%(n)s invitations", self.invitations)),
            (self.links, ngettext("%(n)s password link", "%(n)s password links", self.links)),
            (self.tokens, ngettext("%(n)s access token", "%(n)s access tokens", self.tokens)),
            (self.webhooks, ngettext("%(n)s webhook", "%(n)s webhooks", self.webhooks)),
        ]
        told = [words % {"n": count} for count, words in parts if count]
        return _("No longer valid: %(things)s.") % {"things": ", ".join(told)} if told else ""


@transaction.atomic
def withdraw(person: User, *, by: User | None) -> Withdrawn:
    """Take back what a person made with rights that they have no longer, and say how much; again: nothing more.

    1. invitations, 2. links to new passwords, 3. what other apps keep. Call it after each change that takes a right
    away, in its transaction.
    """
    unruled = unruled_collections(person)
    mine = Invitation.objects.filter(unruled, invited_by=person, revoked=False)
    invitations = 0
    for row in mine.exclude(uses_left=0).select_related("collection").order_by("pk"):
        # Conditional, as somebody may withdraw it at this moment: then the log has a line already.
        if Invitation.objects.filter(pk=row.pk, revoked=False).update(revoked=True):
            record(by, "invitation.revoked", row.collection, concerns=person, invitation=row.pk)
            invitations += 1
    # Each link is a way into somebody else's account; the log tells who got one.
    since = timezone.now() - timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    made = AuditEntry.objects.filter(unruled, person=person, act="password.link", at__gte=since)
    theirs = User.objects.filter(pk__in=made.values("concerns"))
    # A link holds for the moment of the last sign-in, to the second.
    links = theirs.exclude(last_login=None).update(last_login=F("last_login") - timedelta(seconds=1))
    # Nobody who never signed in has such a moment: the account's is one that no link holds for.
    links += theirs.filter(last_login=None).update(last_login=F("date_joined"))
    counts: dict[str, int] = {"invitations": invitations, "links": links}
    replies: list[tuple[Any, Any]] = rights_lost.send(sender=User, person=person, by=by)
    for _receiver, more in replies:
        counts |= more
    return Withdrawn(**counts)


def unruled_collections(person: User) -> Q:
    """Return the condition of rows that belong to a collection which a person does not admin now, or to none."""
    if not person.is_active:
        return Q()
    if person.is_owner:
        return Q(pk=None)
    return ~Q(collection__in=administered_collections(person).values("pk")) | Q(collection=None)
