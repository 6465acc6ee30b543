"""Members of a collection: joining, roles, deactivation, and the invitations that lead there."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Invitation, Membership, Role, User
from annotation.people.accounts.withdrawing import Withdrawn, withdraw
from annotation.work.queue.undo import end_lease
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Assessor, Collection

INVITATION_DAYS = 14


def list_members(collection: Collection) -> QuerySet[Membership]:
    """Return all members, past ones too, by name, with their judgments in all and `today`."""
    done = Assignment.judgments("assignments__")
    # In the site's own time zone, as for the annotators themselves.
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return (
        collection.memberships.select_related("user")
        .annotate(
            judged=Count("assignments", filter=done),
            today=Count("assignments", filter=done & Q(assignments__ended_at__gte=midnight)),
        )
        .order_by("user__username")
    )


def open_invitations(collection: Collection) -> QuerySet[Invitation]:
    """Invitations not revoked: single ones not used yet, all reusable ones; newest first."""
    return (
        collection.invitations.filter(revoked=False)
        .exclude(limit=1, uses_left=0)
        .select_related("invited_by")
        .order_by("-pk")
    )


@transaction.atomic
def add_member(*, user: User, collection: Collection, role: Role, by: User | None = None) -> Membership:
    """Make a user a member, with an assessor under their name. Raises BadInput for somebody who is one already."""
    if Membership.objects.filter(user=user, collection=collection).exists():
        words = _("%(user)s is already a member of %(collection)s. Change the role on the People page")
        raise BadInput(words % {"user": user, "collection": collection})
    kind = Assessor.Kind.PERSON
    assessor = Assessor.objects.get_or_create(collection=collection, kind=kind, name=user.username)[0]
    record(by, "member.joined", collection, concerns=user, role=role.name.lower())
    read = Collection.objects.values_list("guideline_version", flat=True).get(pk=collection.pk)
    return Membership.objects.create(
        user=user, collection=collection, role=role, assessor=assessor, guideline_read=read
    )


@transaction.atomic
def change_role(*, membership: Membership, role: Role, by: User | None = None) -> Withdrawn:
    """Give a member another role, grades stay; return what was taken back with a role of admin."""
    former = Role(membership.role)
    before, after = former.name.lower(), Role(role).name.lower()
    record(by, "member.role", membership.collection, concerns=membership.user, before=before, after=after)
    membership.role = role
    membership.save(update_fields=["role"])
    return withdraw(membership.user, by=by) if former >= Role.ADMIN > role else Withdrawn()


def explain_lockout(user: User, membership: Membership, new: Role | None) -> str:
    """Explain why an admin may not take this role (None: end the membership) from themselves; "": they may."""
    own = membership.user_id == user.pk and not user.is_owner
    if own and (new is None or new < Role.ADMIN):
        return _("You would lose your own access. Ask another admin to change your role.")
    return ""


@transaction.atomic
def set_active(*, membership: Membership, active: bool, by: User | None = None) -> Withdrawn:
    """End or renew a membership: judgments stay, an open lease goes back; return what was taken back with it."""
    if not active:
        end_lease(membership)
    record(by, "member.active", membership.collection, concerns=membership.user, active=active)
    membership.is_active = active
    membership.save(update_fields=["is_active"])
    return Withdrawn() if active else withdraw(membership.user, by=by)


@transaction.atomic
def invite(
    *, collection: Collection, role: Role, author: User, note: str = "", days: int = INVITATION_DAYS
) -> Invitation:
    """Create an invitation to a collection: a link that one person can use within `days` days."""
    made = Invitation.objects.create(
        collection=collection, role=role, note=note, invited_by=author, expires_at=timezone.now() + timedelta(days=days)
    )
    record(author, "invitation.made", collection, invitation=made.pk, role=role.name.lower(), days=days)
    return made


@transaction.atomic
def invite_each(collection: Collection, author: User, role: Role, notes: Sequence[str], days: int) -> list[Invitation]:
    """Make an invitation for each name or address, or none at all."""
    return [invite(collection=collection, role=role, author=author, note=note, days=days) for note in notes]


@transaction.atomic
def make_reusable_link(
    collection: Collection, author: User, role: Role, *, note: str, limit: int, last_day: date
) -> Invitation:
    """Make a link for at most `limit` people, until the end of `last_day` here."""
    # The first moment of the day after, so that the last day counts whole.
    end = timezone.make_aware(datetime.combine(last_day + timedelta(days=1), time.min))
    people = {"limit": limit, "uses_left": limit, "role": role, "note": note}
    made = Invitation.objects.create(collection=collection, invited_by=author, expires_at=end, **people)
    name, last = role.name.lower(), last_day.isoformat()
    record(author, "invitation.made", collection, invitation=made.pk, role=name, limit=limit, last_day=last)
    return made


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User | None = None) -> None:
    """Stop an invitation's link from working; whoever used it before stays."""
    # Conditional, because somebody may accept it at this moment: then there is nothing to revoke, or to record.
    found = Invitation.objects.filter(pk=invitation.pk, revoked=False).exclude(limit=1, uses_left=0)
    if found.update(revoked=True):
        record(by, "invitation.revoked", invitation.collection, invitation=invitation.pk)


def why_closed(invitation: Invitation) -> str:
    """Explain why an invitation cannot be accepted any more; return "" when it can."""
    if invitation.revoked:
        return _("This invitation was withdrawn.")
    if not invitation.uses_left and invitation.limit > 1:
        return _("This link has reached its limit of uses.")
    if not invitation.uses_left:
        return _("This invitation has already been used. Each link works once.")
    if invitation.expires_at <= timezone.now():
        return _("This invitation has expired.")
    return ""


def home_of(invitation: Invitation) -> str:
    """Return the page after an invitation is accepted; for annotators, of their first pair."""
    if invitation.collection is None:
        return reverse("home")
    if invitation.role == Role.ANNOTATOR:
        return first_pair_url(invitation.collection)
    return reverse("collection", args=[invitation.collection.name])


def first_pair_url(collection: Collection) -> str:
    """Return the address of the judging page that asks for a pair by itself; GET claims none."""
    return reverse("judge", args=[collection.name]) + "?start"


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> None:
    """Join by an invitation. Raises BadInput that says why not."""
    # People with the same link wait here for each other; each finds what the one before left.
    invitation = hold(Invitation.objects, invitation.pk)
    if reason := why_closed(invitation):
        raise BadInput(reason)
    record(user, "invitation.accepted", invitation.collection, invitation=invitation.pk)
    if invitation.collection is not None:
        role = Role(invitation.role or Role.ANNOTATOR)
        add_member(user=user, collection=invitation.collection, role=role, by=user)
    invitation.uses_left -= 1
    if invitation.limit == 1:
        invitation.accepted_by = user
    invitation.save(update_fields=["uses_left", "accepted_by"])


def sign_up(*, invitation: Invitation, username: str, password: str) -> User:
    """Make an account that joins by an invitation; nothing stays when that is closed."""
    # Before the transaction, which would hold a connection while the password is hashed.
    hashed = make_password(password)
    with transaction.atomic():
        user = User.objects.create(username=User.normalize_username(username), password=hashed)
        record(user, "account.made", invitation.collection, way="invitation")
        accept_invitation(invitation=invitation, user=user)
    return user
