"""API of a collection's members and invitations."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.access.audit_log.recording import record
from annotation.models import Invitation, Membership, Role
from annotation.people.accounts import members
from annotation.people.accounts.invitations import invitation_link, mail_invitations
from annotation.people.options import InvitationOptions, LimitOptions, ReusableLinkOptions, RoleName
from annotation.work.quality_control import exclusion
from api.authentication import MANAGE, may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.paging import Cursor, Limit, Page, find_row, page_of
from api.problems import RequestBody
from api.withheld import GuardedSchema
from corpus.errors import BadInput
from corpus.holding import hold_row

router = Router(tags=["members"])


class MemberOut(Schema):
    """A member."""

    number: int
    username: str
    role: RoleName
    active: bool
    paused: bool
    expert: bool = Field(description="Grades gold pairs.")
    qualified: bool = Field(description="Passed the qualification test, or was let pass.")
    failed: bool
    limits: LimitOptions


class MemberIn(RequestBody):
    """Changes of a member; a field that is left out, or null, stays as it is."""

    role: RoleName | None = None
    active: bool | None = Field(None, description="False ends the membership; its judgments stay.")
    paused: bool | None = Field(None, description="A paused member gets no pairs.")
    note: str = Field("", max_length=500, description="What the member reads while paused.")
    expert: bool | None = Field(None, description="Grades gold pairs.")
    limits: LimitOptions | None = Field(None, description="Quotas and deadline; null as the value of one removes it.")


class InvitationOut(GuardedSchema):
    """An invitation that is open. Anyone who opens its link joins."""

    number: int
    role: RoleName
    note: str
    link: str | None = Field(description="Null for a token without the scope `manage`.")
    limit: int
    uses_left: int
    mailed: bool
    expires_at: datetime
    closed: str = Field(description="Why it cannot be accepted any more; empty: it can.")


@router.get("/collections/{slug:name}/members", auth=may("admin"), response=Page[MemberOut])
def list_members(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the members, those who left included."""
    rows = Membership.objects.filter(collection=scope_of(request).collection).select_related("user")
    return page_of(rows, after, limit, _show_member)


@router.get("/collections/{slug:name}/members/{number}", auth=may("admin"), response=MemberOut)
def read_member(request: HttpRequest, name: str, number: int) -> Any:
    """Read one member."""
    return _show_member(_find_member(request, number))


@router.patch("/collections/{slug:name}/members/{number}", auth=may("admin", MANAGE), response=MemberOut)
def change_member(request: HttpRequest, name: str, number: int, body: MemberIn) -> Any:
    """Give a member another role, quotas or a deadline, pause them, end or renew the membership."""
    with transaction.atomic():
        row = _hold_member(request, number)
        return _change_member(request, row, body)


@router.delete("/collections/{slug:name}/members/{number}", auth=may("admin", MANAGE), response=MemberOut)
def remove_member(request: HttpRequest, name: str, number: int) -> Any:
    """End a membership. The judgments stay, and so does the row: it can be made active again."""
    with transaction.atomic():
        row = _hold_member(request, number)
        # Answered with the member, because the row stays and can be made active again.
        return _change_member(request, row, MemberIn.model_validate({"active": False}))


def _change_member(request: HttpRequest, row: Membership, body: MemberIn) -> dict[str, Any]:
    by, role = scope_of(request).user, Role[body.role.upper()] if body.role else Role(row.role)
    # Checked for the result of all fields together, before any of them changes.
    if problem := members.explain_lockout(by, row, role if body.active is not False else None):
        raise BadInput(problem)
    if role != row.role:
        members.change_role(membership=row, role=role, by=by)
    if body.active is not None and body.active != row.is_active:
        members.set_active(membership=row, active=body.active, by=by)
    if body.paused and row.paused_at is None:
        exclusion.pause(membership=row, by=by, note=body.note.replace("\x00", ""))
    elif body.paused is False and row.paused_at is not None:
        exclusion.resume(membership=row, by=by)
    # Only real changes are stored, so that the audit log has no entries of requests without effect.
    if body.expert is not None and body.expert != row.is_expert:
        Membership.objects.filter(pk=row.pk).update(is_expert=body.expert)
        record(scope_of(request), "member.expert", concerns=row.user, expert=body.expert)
    if body.limits is not None:
        limits = _limits_of(row) | body.limits.model_dump(exclude_unset=True)
        members.set_limits(membership=row, by=by, **limits)
    row.refresh_from_db()
    return _show_member(row)


def _find_member(request: HttpRequest, number: int) -> Membership:
    rows = Membership.objects.filter(collection=scope_of(request).collection).select_related("user", "collection")
    return find_row(rows, number, _("Member not found."))


def _hold_member(request: HttpRequest, number: int) -> Membership:
    """Return the locked member, if it matches the header If-Match."""
    member = hold_row(_find_member(request, number))
    require_match(request, MemberOut, _show_member(member))
    return member


def _show_member(row: Membership) -> dict[str, Any]:
    identity = {"number": row.pk, "username": row.user.username, "role": Role(row.role).name.lower()}
    qualified, failed = row.qualified_at is not None, row.failed_at is not None
    status = {"active": row.is_active, "paused": row.paused_at is not None, "expert": row.is_expert}
    return {**identity, **status, "qualified": qualified, "failed": failed, "limits": _limits_of(row)}


def _limits_of(row: Membership) -> dict[str, Any]:
    return {name: getattr(row, name) for name in LimitOptions.model_fields}


@router.get("/collections/{slug:name}/invitations", auth=may("admin"), response=Page[InvitationOut])
def list_invitations(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the open invitations."""
    rows = members.open_invitations(scope_of(request).collection)
    return page_of(rows, after, limit, lambda row: _show_invitation(request, row))


@router.post("/collections/{slug:name}/invitations", auth=may("admin", MANAGE), response={201: list[InvitationOut]})
@decorate_view(once)
def invite_people(request: HttpRequest, name: str, body: InvitationOptions) -> Any:
    """Make an invitation for each name, or none."""
    scope = scope_of(request)
    invitations = members.invite_each(scope.collection, scope.user, body.rank, body.people, body.days)
    # Mailed here, because the links begin with the address of the site, which the request knows.
    mail_invitations(request, invitations)
    return Status(201, [_show_invitation(request, invitation) for invitation in invitations])


@router.post("/collections/{slug:name}/invitations/link", auth=may("admin", MANAGE), response={201: InvitationOut})
@decorate_view(once)
def make_reusable_link(request: HttpRequest, name: str, body: ReusableLinkOptions) -> Any:
    """Make a link that several people use, up to a limit and a day."""
    scope = scope_of(request)
    invitation = members.make_reusable_link(
        scope.collection, scope.user, body.rank, note=body.note, limit=body.limit, last_day=body.last_day
    )
    return Status(201, _show_invitation(request, invitation))


@router.get("/collections/{slug:name}/invitations/{number}", auth=may("admin"), response=InvitationOut)
def read_invitation(request: HttpRequest, name: str, number: int) -> Any:
    """Read an open invitation."""
    return _show_invitation(request, _find_invitation(request, number))


@router.delete("/collections/{slug:name}/invitations/{number}", auth=may("admin", MANAGE), response={204: None})
def revoke_invitation(request: HttpRequest, name: str, number: int) -> Any:
    """Withdraw an invitation: its link stops working."""
    with transaction.atomic():
        invitation = hold_row(_find_invitation(request, number))
        # Again, because the invitation may have been used or revoked before it was locked.
        _find_invitation(request, number)
        require_match(request, InvitationOut, _show_invitation(request, invitation))
        members.revoke_invitation(invitation=invitation, by=scope_of(request).user)
    return Status(204, None)


def _find_invitation(request: HttpRequest, number: int) -> Invitation:
    return find_row(members.open_invitations(scope_of(request).collection), number, _("Invitation not found."))


def _show_invitation(request: HttpRequest, row: Invitation) -> dict[str, Any]:
    return {
        "number": row.pk,
        "role": Role(Role.ANNOTATOR if row.role is None else row.role).name.lower(),
        "note": row.note,
        "link": invitation_link(request, row),
        "limit": row.limit,
        "uses_left": row.uses_left,
        "mailed": row.mailed_at is not None,
        "expires_at": row.expires_at,
        "closed": members.why_closed(row),
    }
