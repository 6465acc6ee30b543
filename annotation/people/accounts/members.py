"""Members of a collection: joining, roles, deactivation, and invitations."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Invitation, Membership, Role, User
from annotation.models.comparisons import ComparisonLease
from annotation.people.accounts.withdrawing import Withdrawn, withdraw
from annotation.work.queue.annotators import judged_counts, start_of_site_day
from annotation.work.queue.undo import end_lease
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Assessor, Collection

INVITATION_DAYS = 14


def list_members(collection: Collection) -> QuerySet[Membership]:
    """Return all members by name, also past ones, with the counts of their judgments and of their comparisons.

    `judged` and `today`: see `judged_counts`; `compared` and `compared_today`: the same of answered comparisons.
    """
    answered = ComparisonLease.objects.filter(membership=OuterRef("pk"), is_open=False).order_by()
    groups = {"compared": answered, "compared_today": answered.filter(answered_at__gte=start_of_site_day())}
    comparisons = {
        name: Coalesce(Subquery(leases.values("membership").annotate(n=Count("pk")).values("n")), 0)
        for name, leases in groups.items()
    }
    rows = collection.memberships.select_related("user").annotate(**judged_counts("assignments__"), **comparisons)
    return rows.order_by("user__username")


def open_invitations(collection: Collection) -> QuerySet[Invitation]:
    """Return the invitations that are neither revoked nor, if for one person, used; newest first."""
    return (
        collection.invitations.filter(revoked=False)
        .exclude(limit=1, uses_left=0)
        .select_related("invited_by")
        .order_by("-pk")
    )


@transaction.atomic
def add_member(*, user: User, collection: Collection, role: Role, by: User | None = None) -> Membership:
    """Make a user a member, with an assessor of their name. Raises BadInput for a user who is a member already."""
    if Membership.objects.filter(user=user, collection=collection).exists():
        message = _("%(user)s is already a member of %(collection)s. Change the role on the People page")
        raise BadInput(message % {"user": user, "collection": collection})
    kind = Assessor.Kind.PERSON
    assessor = Assessor.objects.get_or_create(collection=collection, kind=kind, name=user.username)[0]
    record(by, "member.joined", collection, concerns=user, role=role.name.lower())
    guideline_version = Collection.objects.values_list("guideline_version", flat=True).get(pk=collection.pk)
    return Membership.objects.create(
        user=user, collection=collection, role=role, assessor=assessor, guideline_read=guideline_version
    )


@transaction.atomic
def change_role(*, membership: Membership, role: Role, by: User | None = None) -> Withdrawn:
    """Change a member's role; return what was withdrawn with the role of admin. Grades stay, a viewer's lease ends."""
    former = Role(membership.role)
    before, after = former.name.lower(), Role(role).name.lower()
    record(by, "member.role", membership.collection, concerns=membership.user, before=before, after=after)
    if role == Role.VIEWER:
        end_lease(membership)
    membership.role = role
    membership.save(update_fields=["role"])
    return withdraw(membership.user, by=by) if former >= Role.ADMIN > role else Withdrawn()


def explain_lockout(user: User, membership: Membership, new: Role | None) -> str:
    """Return why a user may not give themselves this role (None: end their membership); "" where they may."""
    is_own = membership.user_id == user.pk and not user.is_owner
    if is_own and (new is None or new < Role.ADMIN):
        return _("You would lose your own access. Ask another admin to change your role.")
    return ""


@transaction.atomic
def set_active(*, membership: Membership, active: bool, by: User | None = None) -> Withdrawn:
    """End or renew a membership; return what was withdrawn with it. Judgments stay, open leases are returned."""
    if not active:
        end_lease(membership)
    record(by, "member.active", membership.collection, concerns=membership.user, active=active)
    membership.is_active = active
    membership.save(update_fields=["is_active"])
    return Withdrawn() if active else withdraw(membership.user, by=by)


@transaction.atomic
def set_limits(
    *,
    membership: Membership,
    daily_quota: int | None,
    total_quota: int | None,
    last_day: date | None,
    by: User | None = None,
) -> bool:
    """Set a member's quotas and deadline (None: no limit); return whether anything changed. Held pairs stay theirs."""
    limits = {"daily_quota": daily_quota, "total_quota": total_quota, "last_day": last_day}
    if all(getattr(membership, name) == value for name, value in limits.items()):
        return False
    Membership.objects.filter(pk=membership.pk).update(**limits)
    noted = {name: value.isoformat() if isinstance(value, date) else value for name, value in limits.items()}
    record(by, "member.limits", membership.collection, concerns=membership.user, **noted)
    return True


@transaction.atomic
def invite(
    *, collection: Collection, role: Role, author: User, note: str = "", days: int = INVITATION_DAYS
) -> Invitation:
    """Create an invitation to a collection: a link that one person can use within `days` days."""
    invitation = Invitation.objects.create(
        collection=collection, role=role, note=note, invited_by=author, expires_at=timezone.now() + timedelta(days=days)
    )
    record(author, "invitation.made", collection, invitation=invitation.pk, role=role.name.lower(), days=days)
    return invitation


@transaction.atomic
def invite_each(collection: Collection, author: User, role: Role, notes: Sequence[str], days: int) -> list[Invitation]:
    """Create an invitation for each name or address, all in one transaction."""
    return [invite(collection=collection, role=role, author=author, note=note, days=days) for note in notes]


@transaction.atomic
def make_reusable_link(
    collection: Collection, author: User, role: Role, *, note: str, limit: int, last_day: date
) -> Invitation:
    """Create a link for at most `limit` people, valid until the end of `last_day` in the site's time zone."""
    # The start of the next day, so that the whole last day is included.
    end = timezone.make_aware(datetime.combine(last_day + timedelta(days=1), time.min))
    people = {"limit": limit, "uses_left": limit, "role": role, "note": note}
    invitation = Invitation.objects.create(collection=collection, invited_by=author, expires_at=end, **people)
    name, last = role.name.lower(), last_day.isoformat()
    record(author, "invitation.made", collection, invitation=invitation.pk, role=name, limit=limit, last_day=last)
    return invitation


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User | None = None) -> None:
    """Revoke an invitation; people who used its link before stay members."""
    # Conditional, because somebody may accept the invitation at this moment; then nothing is revoked or recorded.
    open_invitation = Invitation.objects.filter(pk=invitation.pk, revoked=False).exclude(limit=1, uses_left=0)
    if open_invitation.update(revoked=True):
        record(by, "invitation.revoked", invitation.collection, invitation=invitation.pk)


def why_closed(invitation: Invitation) -> str:
    """Return why an invitation cannot be accepted any more; "" where it can."""
    if invitation.revoked:
        return _("This invitation was withdrawn.")
    if not invitation.uses_left and invitation.limit > 1:
        return _("This link has reached its limit of uses.")
    if not invitation.uses_left:
        return _("This invitation has already been used. Each link works once.")
    if invitation.expires_at <= timezone.now():
        return _("This invitation has expired.")
    return ""


def suggest_name(invitation: Invitation) -> str:
    """Return the name of the person for whom an invitation was made; "" if no account can be called so."""
    try:
        User.username_validator(invitation.note)
    except ValidationError:
        return ""
    return "" if invitation.limit > 1 or "@" in invitation.note else invitation.note[:150]


def home_of(invitation: Invitation) -> str:
    """Return the page after an invitation is accepted: for annotators the judging page."""
    if invitation.collection is None:
        return reverse("home")
    if invitation.role == Role.ANNOTATOR:
        return first_pair_url(invitation.collection)
    return reverse("collection", args=[invitation.collection.name])


def first_pair_url(collection: Collection) -> str:
    """Return the address of the judging page that claims a pair by itself, with a POST."""
    return reverse("judge", args=[collection.name]) + "?start"


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> None:
    """Join a collection or the site by an invitation. Raises BadInput with the reason why the user cannot."""
    # Locked, so that people with the same link cannot exceed its limit.
    invitation = hold(Invitation.objects, invitation.pk)
    if reason := why_closed(invitation):
        raise BadInput(reason)
    record(user, "invitation.accepted", invitation.collection, invitation=invitation.pk)
    if invitation.collection is not None:
        role = Role.ANNOTATOR if invitation.role is None else Role(invitation.role)
        add_member(user=user, collection=invitation.collection, role=role, by=user)
    invitation.uses_left -= 1
    if invitation.limit == 1:
        invitation.accepted_by = user
    invitation.save(update_fields=["uses_left", "accepted_by"])


def sign_up(*, invitation: Invitation, username: str, password: str) -> User:
    """Create an account that joins by an invitation, or nothing where the invitation is closed.

    Raises BadInput, and IntegrityError for a name that is taken.
    """
    # Hashed before the transaction, which would hold a connection in the meantime.
    hashed = make_password(password)
    with transaction.atomic():
        user = User.objects.create(username=User.normalize_username(username), password=hashed)
        record(user, "account.made", invitation.collection, way="invitation")
        accept_invitation(invitation=invitation, user=user)
    return user
