"""Members of a collection: joining, roles, deactivation, and the invitations that lead there."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotation.models import Assignment, Invitation, Membership, Role, User
from annotation.undo import end_lease
from corpus.errors import BadInput
from corpus.models import Assessor, Collection

INVITATION_DAYS = 14


def members(collection: Collection) -> QuerySet[Membership]:
    """Everyone who ever joined, active ones first, each with `judged`: how many items they judged."""
    return (
        collection.memberships.select_related("user")
        .annotate(judged=Count("assignments", filter=Q(assignments__state=Assignment.State.DONE)))
        .order_by("-is_active", "-role", "user__username")
    )


def open_invitations(collection: Collection) -> QuerySet[Invitation]:
    """Invitations that nobody used yet and that nobody revoked, newest first; expired ones too."""
    return (
        collection.invitations.filter(accepted_by=None, revoked=False)
        .select_related("invited_by")
        .order_by("-created_at")
    )


@transaction.atomic
def add_member(*, user: User, collection: Collection, role: Role) -> Membership:
    """Join, with an assessor of one's own under the user name. Who is a member already: BadInput."""
    if Membership.objects.filter(user=user, collection=collection).exists():
        raise BadInput(f"{user} is a member of {collection} already: change the role on the members page")
    assessor, _ = Assessor.objects.get_or_create(collection=collection, kind=Assessor.Kind.PERSON, name=user.username)
    return Membership.objects.create(user=user, collection=collection, role=role, assessor=assessor)


def change_role(*, membership: Membership, role: Role) -> None:
    """Another role from now on; grades that were given stay."""
    membership.role = role
    membership.save(update_fields=["role"])


@transaction.atomic
def set_active(*, membership: Membership, active: bool) -> None:
    """End or renew a membership. Its judgments stay, under its name; an open lease goes back to the queue."""
    if not active:
        end_lease(membership)
    membership.is_active = active
    membership.save(update_fields=["is_active"])


def invite(
    *, collection: Collection, role: Role, author: User, note: str = "", days: int = INVITATION_DAYS
) -> Invitation:
    """A link for one person, for `days` days."""
    return Invitation.objects.create(
        collection=collection, role=role, note=note, invited_by=author, expires_at=timezone.now() + timedelta(days=days)
    )


def revoke(*, invitation: Invitation) -> None:
    """The link stops working; whoever used it before stays."""
    Invitation.objects.filter(pk=invitation.pk, accepted_by=None).update(revoked=True)


def why_closed(invitation: Invitation) -> str:
    """Why an invitation cannot be accepted any more, in a sentence; empty when it can."""
    if invitation.accepted_by_id is not None:
        return "This invitation was used already. Each link works once."
    if invitation.revoked:
        return "This invitation was withdrawn."
    if invitation.expires_at <= timezone.now():
        return "This invitation has expired."
    return ""


@transaction.atomic
def accept(*, invitation: Invitation, user: User) -> None:
    """Join by an invitation, once: two people with the same link race for a row lock. BadInput says why not."""
    invitation = Invitation.objects.select_for_update().get(pk=invitation.pk)
    if reason := why_closed(invitation):
        raise BadInput(reason)
    if invitation.collection is not None:
        add_member(user=user, collection=invitation.collection, role=Role(invitation.role or Role.ANNOTATOR))
    invitation.accepted_by = user
    invitation.save(update_fields=["accepted_by"])


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str) -> User:
    """A new account that joins by the invitation; nothing of it stays when the invitation turns out closed."""
    user = User.objects.create_user(username=username, password=password)
    accept(invitation=invitation, user=user)
    return user
