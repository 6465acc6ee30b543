"""Withdraws what a person created with rights that they have lost, such as links by which they could return."""

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

# Sent with `person` and `by`. A receiver in an app that annotation must not import withdraws its own rows
# of the person, and returns their number, such as {"webhooks": 1}.
rights_lost = Signal()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The numbers of withdrawn rows."""

    invitations: int = 0
    links: int = 0
    tokens: int = 0
    webhooks: int = 0
    shared: int = 0

    def __str__(self) -> str:
        """Return a sentence that lists what was withdrawn; "" for nothing."""
        parts = [
            (self.invitations, ngettext("%(n)s invitation", "%(n)s invitations", self.invitations)),
            (self.links, ngettext("%(n)s password link", "%(n)s password links", self.links)),
            (self.tokens, ngettext("%(n)s access token", "%(n)s access tokens", self.tokens)),
            (self.webhooks, ngettext("%(n)s webhook", "%(n)s webhooks", self.webhooks)),
            (self.shared, ngettext("%(n)s shared link", "%(n)s shared links", self.shared)),
        ]
        items = [text % {"n": count} for count, text in parts if count]
        return _("No longer valid: %(things)s.") % {"things": ", ".join(items)} if items else ""


@transaction.atomic
def withdraw(person: User, *, by: User | None) -> Withdrawn:
    """Withdraw what a person created with rights that they do not have any more; can be repeated.

    1. Revoke their invitations.
    2. Make their password links invalid.
    3. Let other apps withdraw their rows.

    Call it after each change that takes a right away, in the same transaction.
    """
    without_rights = not_administered(person)
    own_invitations = Invitation.objects.filter(without_rights, invited_by=person, revoked=False)
    invitations = 0
    for row in own_invitations.exclude(uses_left=0).select_related("collection").order_by("pk"):
        # Conditional, because another request may revoke and record it at this moment.
        if Invitation.objects.filter(pk=row.pk, revoked=False).update(revoked=True):
            record(by, "invitation.revoked", row.collection, concerns=person, invitation=row.pk)
            invitations += 1
    # Each link gives access to another account; the audit log records for which accounts links were created.
    since = timezone.now() - timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    links_made = AuditEntry.objects.filter(without_rights, person=person, act="password.link", at__gte=since)
    linked_users = User.objects.filter(pk__in=links_made.values("concerns"))
    # A link is valid for one value of the last sign-in, in seconds.
    links = linked_users.exclude(last_login=None).update(last_login=F("last_login") - timedelta(seconds=1))
    # Accounts that never signed in get a value for which no link is valid.
    links += linked_users.filter(last_login=None).update(last_login=F("date_joined"))
    counts: dict[str, int] = {"invitations": invitations, "links": links}
    replies: list[tuple[Any, Any]] = rights_lost.send(sender=User, person=person, by=by)
    for _receiver, app_counts in replies:
        counts |= app_counts
    return Withdrawn(**counts)


def not_administered(person: User) -> Q:
    """Return the condition of rows of collections that a person does not administer now, or of no collection."""
    if not person.is_active:
        return Q()
    if person.is_owner:
        return Q(pk=None)
    return ~Q(collection__in=administered_collections(person).values("pk")) | Q(collection=None)
