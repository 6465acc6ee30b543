"""Members of a collection: joining, roles, deactivation, and the invitations that lead there."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.audit_log.recording import record
from annotation.models import Assignment, Invitation, Membership, Role, User
from annotation.queue.undo import end_lease
from corpus.errors import BadInput
from corpus.models import Assessor, Collection

INVITATION_DAYS = 14


def list_members(collection: Collection) -> QuerySet[Membership]:
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
def add_member(*, user: User, collection: Collection, role: Role, by: User | None = None) -> Membership:
    """Make a user a member, with an assessor under their name. Who is a member already: BadInput."""
    if Membership.objects.filter(user=user, collection=collection).exists():
        raise BadInput(
            _("%(user)s is a member of %(collection)s already: change the role on the members page")
            % {"user": user, "collection": collection}
        )
    kind = Assessor.Kind.PERSON
    assessor = Assessor.objects.get_or_create(collection=collection, kind=kind, name=user.username)[0]
    record(by, "member.joined", collection, concerns=user, role=role.name.lower())
    read = Collection.objects.values_list("guideline_version", flat=True).get(pk=collection.pk)
    return Membership.objects.create(
        user=user, collection=collection, role=role, assessor=assessor, guideline_read=read
    )


@transaction.atomic
def change_role(*, membership: Membership, role: Role, by: User | None = None) -> None:
    """Give a member another role from now on; grades that were given stay."""
    before, after = Role(membership.role).name.lower(), Role(role).name.lower()
    record(by, "member.role", membership.collection, concerns=membership.user, before=before, after=after)
    membership.role = role
    membership.save(update_fields=["role"])


@transaction.atomic
def set_active(*, membership: Membership, active: bool, by: User | None = None) -> None:
    """End or renew a membership. Its judgments stay, under its name; an open lease goes back to the queue."""
    if not active:
        end_lease(membership)
    record(by, "member.active", membership.collection, concerns=membership.user, active=active)
    membership.is_active = active
    membership.save(update_fields=["is_active"])


@transaction.atomic
def invite(
    *, collection: Collection, role: Role, author: User, note: str = "", days: int = INVITATION_DAYS
) -> Invitation:
    """Make an invitation: a link for one person, for `days` days."""
    made = Invitation.objects.create(
        collection=collection, role=role, note=note, invited_by=author, expires_at=timezone.now() + timedelta(days=days)
    )
    record(author, "invitation.made", collection, invitation=made.pk, role=role.name.lower(), days=days)
    return made


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User | None = None) -> None:
    """Stop an invitation's link from working; whoever used it before stays."""
    # Conditional, because somebody may accept it at this moment: then there is nothing to revoke, or to record.
    if Invitation.objects.filter(pk=invitation.pk, accepted_by=None, revoked=False).update(revoked=True):
        record(by, "invitation.revoked", invitation.collection, invitation=invitation.pk)


def why_closed(invitation: Invitation) -> str:
    """Why an invitation cannot be accepted any more, in a sentence; empty when it can."""
    if invitation.accepted_by_id is not None:
        return _("This invitation was used already. Each link works once.")
    if invitation.revoked:
        return _("This invitation was withdrawn.")
    if invitation.expires_at <= timezone.now():
        return _("This invitation has expired.")
    return ""


def home_of(invitation: Invitation) -> str:
    """Where an invitation leads who accepted it."""
    return reverse("collection", args=[invitation.collection.name]) if invitation.collection else reverse("home")


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> None:
    """Join by an invitation, once. BadInput says why not."""
    # Two people with the same link wait here for each other; the second finds it used.
    invitation = Invitation.objects.select_for_update().get(pk=invitation.pk)
    if reason := why_closed(invitation):
        raise BadInput(reason)
    record(user, "invitation.accepted", invitation.collection, invitation=invitation.pk)
    if invitation.collection is not None:
        role = Role(invitation.role or Role.ANNOTATOR)
        add_member(user=user, collection=invitation.collection, role=role, by=user)
    invitation.accepted_by = user
    invitation.save(update_fields=["accepted_by"])


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str) -> User:
    """Make an account that joins by an invitation; nothing of it stays when the invitation turns out closed."""
    user = User.objects.create_user(username=username, password=password)
    record(user, "account.made", invitation.collection, way="invitation")
    accept_invitation(invitation=invitation, user=user)
    return user
