"""The People page, with members, their quality and invitations; and the page of each member."""

from datetime import timedelta
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from actions.options import ActionForm
from annotation.access.permissions import Scope, action
from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.models import Invitation, Membership, Role
from annotation.models.quality_control import JudgmentExclusion
from annotation.people import pay, table
from annotation.people.accounts import members
from annotation.people.accounts.invitations import invitation_link, mail_invitations, may_hand_link
from annotation.people.options import InvitationOptions, LimitOptions, ReusableLinkOptions
from annotation.quality.label_quality.statistics import PEOPLE_POPULATION, people_charts
from annotation.work.quality_control import exclusion as exclusions
from annotation.work.quality_control.forms import NoteForm
from corpus.chart_downloads import download
from corpus.errors import BadInput


@action("admin", "GET")
def show_members(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a collection's members with their quality, and the open invitations."""
    return _render_members(request, scope)


@action("admin", "POST")
def invite_members(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Create an invitation for each name, mail those with an email address, and show the links."""
    form = _invitation_form(request.POST)
    if not form.is_valid():
        return _render_members(request, scope, form=form, status=422)
    options = cast(InvitationOptions, form.options)
    invitations = members.invite_each(scope.collection, scope.user, options.rank, options.people, options.days)
    # Invitations whose mail failed stay valid: the page shows their links.
    failed = mail_invitations(request, invitations)
    if failed:
        text = _("The email to %(names)s could not be sent. Copy the links and send them yourself.")
        messages.error(request, text % {"names": ", ".join(invitation.note for invitation in failed)})
    return _show_made(scope, invitations)


@action("admin", "POST")
def make_reusable_link(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Create a link for several people, up to a limit and a day."""
    form = ActionForm(ReusableLinkOptions, request.POST, prefix="link")
    if not form.is_valid():
        return _render_members(request, scope, link_form=form, status=422)
    options = cast(ReusableLinkOptions, form.options)
    invitation = members.make_reusable_link(
        scope.collection, scope.user, options.rank, note=options.note, limit=options.limit, last_day=options.last_day
    )
    return _show_made(scope, [invitation])


@action("admin", "POST")
def revoke_invitation(request: HttpRequest, scope: Scope, invitation: int) -> HttpResponse:
    """Revoke an invitation, whose link stops working."""
    row = get_object_or_404(Invitation, pk=invitation, collection=scope.collection)
    members.revoke_invitation(invitation=row, by=scope.user)
    messages.success(request, _("Invitation withdrawn."))
    return redirect(reverse("members", args=[scope.collection.name]) + "#invitations")


@action("admin", "POST")
def join_as_owner(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make an owner of the site a member, so that they can judge."""
    try:
        members.add_member(user=scope.user, collection=scope.collection, role=Role.ADMIN, by=scope.user)
    except BadInput as error:
        return _render_members(request, scope, problem=str(error), status=409)
    messages.success(request, _("You are now a member and can judge pairs."))
    return redirect("members", scope.collection.name)


def _invitation_form(*data: Any) -> ActionForm:
    form = ActionForm(InvitationOptions, *data)
    form.fields["people"].widget.attrs["rows"] = 4
    return form


def _show_made(scope: Scope, invitations: list[Invitation]) -> HttpResponse:
    # A redirect to the page with these links at its top, so that reloading it invites nobody twice.
    numbers = ",".join(str(invitation.pk) for invitation in invitations)
    return redirect(f"{reverse('members', args=[scope.collection.name])}?made={numbers}")


def _render_members(
    request: HttpRequest,
    scope: Scope,
    *,
    form: ActionForm | None = None,
    link_form: ActionForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    statistics, failure = table.read_statistics(scope.collection)
    charts = people_charts(scope.collection.name, statistics.people or ())
    if file := download(request, charts):
        return file
    order = request.GET.get("order", "")
    invitations: list[dict[str, Any]] = [
        {"row": row, "link": invitation_link(request, row), "closed": members.why_closed(row)}
        for row in members.open_invitations(scope.collection)
    ]
    made_ids = set(request.GET.get("made", "").split(","))
    # In the order of their creation; the list above is newest first.
    made = [entry for entry in reversed(invitations) if str(entry["row"].pk) in made_ids]
    n, default_end = len(made), timezone.localdate() + timedelta(days=14)
    # Each heading has the order on a click and the current order.
    headings = []
    for column in table.COLUMNS:
        first, second = (f"-{column.key}", column.key) if column.descending else (column.key, f"-{column.key}")
        current = {column.key: "ascending", f"-{column.key}": "descending"}.get(order, "")
        next_order = second if order == first else first
        headings.append({"title": column.title, "number": column.number, "order": next_order, "sorted": current})
    context = {
        "scope": scope,
        "rows": table.list_rows(scope.collection, statistics.people or (), order),
        "headings": headings,
        "found": statistics,
        "failure": failure,
        "population": PEOPLE_POPULATION,
        "charts": charts,
        "invitations": invitations,
        "made": made,
        "mailed": any(entry["row"].mailed_at for entry in made),
        "made_title": ngettext("%(n)s invitation is ready", "%(n)s invitations are ready", n) % {"n": n},
        "form": form or _invitation_form(),
        "link_form": link_form or ActionForm(ReusableLinkOptions, prefix="link", initial={"last_day": default_end}),
        "problem": problem,
    }
    return render(request, "people/members.html", context, status=status)


# Hours and pay


@action("admin", "GET")
def show_pay(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show hours, pairs, pay and quality of each person by month."""
    try:
        with measuring(scope.collection):
            rows, failure = pay.list_pay(scope.collection), ""
    except MeasuringFailed as error:
        rows, failure = [], str(error)
    return render(request, "people/pay.html", {"scope": scope, "rows": rows, "failure": failure})


@action("admin", "GET")
def pay_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download hours, pairs, pay and quality of each person by month as CSV."""
    headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-pay.csv"'}
    return HttpResponse("".join(pay.csv_lines(scope.collection)), "text/csv; charset=utf-8", headers=headers)


# The page of a member


@action("admin", "GET")
def show_member(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Show a member's figures and batches, with the actions on them."""
    return _render_member(request, scope, scope.find_member(member))


@action("admin", "POST")
def set_member_role(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Change a member's role; a lower role needs the field `confirm`."""
    row, new_role = scope.find_member(member), request.POST.get("role", "")
    if new_role not in map(str, Role.values):
        return _render_member(request, scope, row, problem=_("Choose one of the roles."))
    before, after = Role(row.role), Role(int(new_role))
    if problem := members.explain_lockout(scope.user, row, after):
        return _render_member(request, scope, row, problem=problem)
    # A lower role must be confirmed, because the member loses access to pages.
    if after < before and "confirm" not in request.POST:
        return _render_member(request, scope, row, smaller=after)
    if after != before and (withdrawn := str(members.change_role(membership=row, role=after, by=scope.user))):
        messages.info(request, withdrawn)
    return redirect(f"{reverse('member', args=[scope.collection.name, row.pk])}?was={before.value}")


@action("admin", "POST")
def set_member_active(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """End or renew a membership (`active` = 0 or 1)."""
    row = scope.find_member(member)
    renew = request.POST.get("active") == "1"
    if not renew and (problem := members.explain_lockout(scope.user, row, None)):
        return _render_member(request, scope, row, problem=problem)
    if withdrawn := str(members.set_active(membership=row, active=renew, by=scope.user)):
        messages.info(request, withdrawn)
    before = "inactive" if renew else "active"
    return redirect(f"{reverse('member', args=[scope.collection.name, row.pk])}?was={before}")


@action("admin", "POST")
def pause_member(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Pause a member, or resume them with the field `on`."""
    row, form = scope.find_member(member), NoteForm(request.POST)
    if "on" in request.POST:
        exclusions.resume(membership=row, by=scope.user)
        text = _("%(name)s receives pairs again.")
    else:
        note = form.cleaned_data["note"] if form.is_valid() else ""
        exclusions.pause(membership=row, by=scope.user, note=note)
        text = _("%(name)s is paused. Open pairs returned to the queue.")
    messages.success(request, text % {"name": row.user.username})
    return redirect("member", scope.collection.name, row.pk)


@action("admin", "POST")
def set_member_limits(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Set a member's quotas and deadline; an empty field removes one."""
    row, form = scope.find_member(member), ActionForm(LimitOptions, request.POST)
    if not form.is_valid():
        return _render_member(request, scope, row, limits=form)
    changed = members.set_limits(membership=row, by=scope.user, **form.options.model_dump())
    messages.success(request, _("Saved. Applies from the next pair.") if changed else _("Nothing was changed."))
    return redirect("member", scope.collection.name, row.pk)


@action("admin", "POST")
def exclude_judgments(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Exclude a member's judgments, all or those since a time."""
    row, form = scope.find_member(member), NoteForm(request.POST)
    if not form.is_valid():
        return _render_member(request, scope, row, problem=_("Enter a date and a time, or leave the field blank."))
    options = form.cleaned_data
    try:
        new_exclusion = exclusions.exclude_judgments(
            membership=row, by=scope.user, note=options["note"], since=options["since"]
        )
    except BadInput as error:
        return _render_member(request, scope, row, problem=str(error))
    n = len(new_exclusion.judgments)
    messages.success(request, ngettext("%(n)s row excluded.", "%(n)s rows excluded.", n) % {"n": n})
    return redirect("member", scope.collection.name, row.pk)


@action("admin", "POST")
def reinstate_judgments(request: HttpRequest, scope: Scope, exclusion: int) -> HttpResponse:
    """Reinstate the judgments of an exclusion."""
    exclusion_row = get_object_or_404(
        JudgmentExclusion.objects.select_related("membership"), pk=exclusion, membership__collection=scope.collection
    )
    try:
        reinstatement = exclusions.reinstate_judgments(act=exclusion_row, by=scope.user)
    except BadInput as error:
        return _render_member(request, scope, scope.find_member(exclusion_row.membership_id), problem=str(error))
    n = len(reinstatement.judgments)
    messages.success(request, ngettext("%(n)s judgment reinstated.", "%(n)s judgments reinstated.", n) % {"n": n})
    return redirect("member", scope.collection.name, exclusion_row.membership_id)


def _render_member(
    request: HttpRequest,
    scope: Scope,
    row: Membership,
    *,
    problem: str = "",
    smaller: Role | None = None,
    limits: ActionForm | None = None,
) -> HttpResponse:
    statistics, failure, quality = table.find_quality(scope.collection, row)
    was = request.GET.get("was", "")
    context = {
        "scope": scope,
        "member": row,
        "care": table.annotator_record(row),
        "found": statistics,
        "failure": failure,
        "quality": quality,
        "roles": Role.choices,
        "smaller": smaller,
        # The change made a moment ago, which the page offers to undo: of the role or of the membership.
        "role_before": next(
            (candidate for candidate in Role if was == str(candidate.value) and candidate != row.role), None
        ),
        "changed": was == "inactive" if row.is_active else was == "active",
        "may_hand_link": may_hand_link(scope, row.user),
        "problem": problem,
        "limits": limits
        or ActionForm(LimitOptions, initial={name: getattr(row, name) for name in LimitOptions.model_fields}),
    }
    return render(request, "people/person.html", context, status=422 if problem or smaller or limits else 200)
