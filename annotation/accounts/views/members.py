"""People of a collection: roles, invitations, deactivation."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.accounts import members
from annotation.accounts.forms import InvitationForm, RoleForm
from annotation.models import Invitation, Membership, Role
from annotation.permissions import Scope, action
from corpus.errors import BadInput


@action("admin")
@require_GET
def people(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Who works here, and which invitations are open."""
    return _render_members(request, scope, InvitationForm())


@action("admin")
@require_POST
def invite(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make an invitation; the page shows its link."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _render_members(request, scope, form, status=422)
    given = form.cleaned_data
    made = members.invite(
        collection=scope.collection, role=given["role"], author=scope.user, note=given["note"], days=given["days"]
    )
    messages.success(request, _("The invitation is ready. Copy its link and send it to one person."))
    return redirect(f"{request.path.removesuffix('invite/')}#invitation-{made.pk}")


@action("admin")
@require_POST
def revoke(request: HttpRequest, scope: Scope, invitation: int) -> HttpResponse:
    """Withdraw an invitation: its link stops working."""
    found = get_object_or_404(Invitation, pk=invitation, collection=scope.collection)
    members.revoke_invitation(invitation=found, by=scope.user)
    messages.success(request, _("The invitation is withdrawn."))
    return redirect("members", scope.collection.name)


@action("admin")
@require_POST
def role(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Give a member another role."""
    membership = scope.find_member(member)
    form = RoleForm(request.POST)
    if form.is_valid():
        problem = _locks_out(scope, membership, form.cleaned_data["role"])
    else:
        problem = _("Choose one of the three roles.")
    if problem:
        return _render_members(request, scope, InvitationForm(), problem=problem, status=422)
    members.change_role(membership=membership, role=form.cleaned_data["role"], by=scope.user)
    messages.success(
        request,
        _("%(username)s is %(get_role_display)s now.")
        % {"username": membership.user.username, "get_role_display": membership.get_role_display()},
    )
    return redirect("members", scope.collection.name)


@action("admin")
@require_POST
def active(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """End or renew a membership (`active` = 0 or 1)."""
    membership = scope.find_member(member)
    renew = request.POST.get("active") == "1"
    if not renew and (problem := _locks_out(scope, membership, None)):
        return _render_members(request, scope, InvitationForm(), problem=problem, status=422)
    members.set_active(membership=membership, active=renew, by=scope.user)
    done = _("is a member again.") if renew else _("is no member any more. What they judged stays.")
    messages.success(request, f"{membership.user.username} {done}")
    return redirect("members", scope.collection.name)


@action("admin")
@require_POST
def join(request: HttpRequest, scope: Scope) -> HttpResponse:
    """An owner becomes a member, to be able to judge."""
    try:
        members.add_member(user=scope.user, collection=scope.collection, role=Role.ADMIN, by=scope.user)
    except BadInput as error:
        return _render_members(request, scope, InvitationForm(), problem=str(error), status=409)
    messages.success(request, _("You are a member now and can judge."))
    return redirect("members", scope.collection.name)


def _locks_out(scope: Scope, membership: Membership, new: Role | None) -> str:
    """Admins do not take their own key away by mistake; owners have another."""
    own = membership.user_id == scope.user.pk and not scope.user.is_owner
    if own and (new is None or new < Role.ADMIN):
        return _("You would lock yourself out. Ask another admin to change your role.")
    return ""


def _render_members(
    request: HttpRequest, scope: Scope, form: InvitationForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "scope": scope,
        "section": "members",
        "members": members.list_members(scope.collection),
        "roles": Role.choices,
        "invitations": [
            {
                "row": row,
                "link": request.build_absolute_uri(f"/invitations/{row.token}/"),
                "closed": members.why_closed(row),
            }
            for row in members.open_invitations(scope.collection)
        ],
        "form": form,
        "problem": problem,
    }
    return render(request, "accounts/members.html", context, status=status)
