"""What stands between an annotator and the queue: a pause, the consent, the qualification test.

Everything is read from the membership and its collection, which each request loads anyway.
"""

from typing import Literal

from django.utils.translation import gettext as _

from annotation.models import Membership, Role

Closed = Literal["", "paused", "consent", "failed"]


def closed(membership: Membership) -> Closed:
    """Why nothing is lent to this member; "" where the queue is open, or the qualification test is."""
    if membership.paused_at is not None:
        return "paused"
    if membership.consent < membership.collection.consent_version:
        return "consent"
    if membership.failed_at is not None and is_tried(membership):
        return "failed"
    return ""


def is_tried(membership: Membership) -> bool:
    """Whether the qualification test comes first. It is for annotators: who has another role was chosen for it."""
    asked = membership.collection.qualification and membership.qualified_at is None
    return asked and membership.role == Role.ANNOTATOR


def refuses(membership: Membership) -> str:
    """Why a decision of this member is not counted, in a sentence; "" where it is."""
    return why_closed(closed(membership))


def why_closed(closed: str) -> str:
    """The same for what `closed` says."""
    if closed in ("", "consent"):
        return ""
    if closed == "paused":
        return _("Your work here is paused, so this was not counted.")
    return _("You have not passed the qualification test, so this was not counted.")
