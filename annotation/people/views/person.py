"""Page of one person: every figure with its interval, and what an admin can do about the person and their judgments."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from annotation.accounts import members
from annotation.accounts.invitations import may_hand_link
from annotation.accounts.withdrawing import Withdrawn
from annotation.models import Membership, Role
from annotation.models.quality_control import JudgmentExclusion
from annotation.people import table
from annotation.people.forms import RoleForm
from annotation.permissions import Scope, action
from annotation.quality_control import exclusion, people
from annotation.quality_control.forms import NoteForm
from corpus.errors import BadInput


@action("admin")
@require_GET
def person(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Show one person's figures and batches, and what can be done."""
    return _render_person(request, scope, scope.find_member(member))


@action("admin")
@require_POST
def role(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Change a member's role; a lower one needs `confirm`."""
    row, form = scope.find_member(member), RoleForm(request.POST)
    if not form.is_valid():
        return _render_person(request, scope, row, problem=_("Choose one of the three roles."))
    before, new = Role(row.role), form.cleaned_data["role"]
    if problem := members.explain_lockout(scope.user, row, new):
        return _render_person(request, scope, row, problem=problem)
    # A lower role takes pages away from somebody, so it is asked about first.
    if new < before and "confirm" not in request.POST:
        return _render_person(request, scope, row, smaller=new)
    if new != before:
        _tell_withdrawn(request, members.change_role(membership=row, role=new, by=scope.user))
    return redirect(f"{reverse('person', args=[scope.collection.name, row.pk])}?was={before.value}")


@action("admin")
@require_POST
def active(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """End or renew a membership (`active` = 0 or 1)."""
    row = scope.find_member(member)
    renew = request.POST.get("active") == "1"
    if not renew and (problem := members.explain_lockout(scope.user, row, None)):
        return _render_person(request, scope, row, problem=problem)
    _tell_withdrawn(request, members.set_active(membership=row, active=renew, by=scope.user))
    return redirect(
        f"{reverse('person', args=[scope.collection.name, row.pk])}?was={'inactive' if renew else 'active'}"
    )


def _tell_withdrawn(request: HttpRequest, withdrawn: Withdrawn) -> None:
    if told := str(withdrawn):
        messages.info(request, told)


@action("admin")
@require_POST
def person_pause(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Pause somebody, or with `on` let them go on."""
    row, form = scope.find_member(member), NoteForm(request.POST)
    if "on" in request.POST:
        exclusion.go_on(membership=row, by=scope.user)
        text = _("%(name)s receives pairs again.")
    else:
        note = form.cleaned_data["note"] if form.is_valid() else ""
        exclusion.pause(membership=row, by=scope.user, note=note)
        text = _("%(name)s is paused. Open pairs returned to the queue.")
    messages.success(request, text % {"name": row.user.username})
    return redirect("person", scope.collection.name, row.pk)


@action("admin")
@require_POST
def exclude_judgments(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Set a person's judgments aside, all or from a moment on."""
    row, form = scope.find_member(member), NoteForm(request.POST)
    if not form.is_valid():
        return _render_person(request, scope, row, problem=_("Enter a date and a time, or leave the field blank."))
    given = form.cleaned_data
    try:
        act = exclusion.exclude_judgments(membership=row, by=scope.user, note=given["note"], since=given["since"])
    except BadInput as error:
        return _render_person(request, scope, row, problem=str(error))
    n = len(act.judgments)
    messages.success(request, ngettext("%(n)s row excluded.", "%(n)s rows excluded.", n) % {"n": n})
    return redirect("person", scope.collection.name, row.pk)


@action("admin")
@require_POST
def reinstate_judgments(request: HttpRequest, scope: Scope, act: int) -> HttpResponse:
    """Reinstate what was set aside."""
    found = get_object_or_404(
        JudgmentExclusion.objects.select_related("membership"), pk=act, membership__collection=scope.collection
    )
    try:
        back = exclusion.reinstate_judgments(act=found, by=scope.user)
    except BadInput as error:
        return _render_person(request, scope, scope.find_member(found.membership_id), problem=str(error))
    n = len(back.judgments)
    messages.success(request, ngettext("%(n)s judgment reinstated.", "%(n)s judgments reinstated.", n) % {"n": n})
    return redirect("person", scope.collection.name, found.membership_id)


def _render_person(
    request: HttpRequest, scope: Scope, row: Membership, *, problem: str = "", smaller: Role | None = None
) -> HttpResponse:
    found, failure, quality = table.find_quality(scope.collection, row)
    was = request.GET.get("was", "")
    context = {
        "scope": scope,
        "member": row,
        "care": people.annotator_record(row),
        "found": found,
        "failure": failure,
        "quality": quality,
        "roles": Role.choices,
        "smaller": smaller,
        # What was changed a moment ago, so that it can be undone: the role before, or the membership.
        "role_before": next((one for one in Role if was == str(one.value) and one != row.role), None),
        "changed": was == "inactive" if row.is_active else was == "active",
        "may_hand_link": may_hand_link(scope, row.user),
        "problem": problem,
    }
    return render(request, "people/person.html", context, status=422 if problem or smaller else 200)
