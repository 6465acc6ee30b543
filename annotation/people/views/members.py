"""The People page of a collection: members and their quality, invitations, reusable links."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from annotation.accounts import members
from annotation.accounts.invitations import link_of, mail_invitations
from annotation.label_quality.statistics import PEOPLE_POPULATION, people_charts
from annotation.models import Invitation, Role
from annotation.people import table
from annotation.people.forms import InvitationForm, ReusableLinkForm
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from corpus.errors import BadInput


@action("admin")
@require_GET
def people(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a collection's members with their quality, and the open invitations."""
    return _render_members(request, scope)


@action("admin")
@require_POST
def invite(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make an invitation for each name, or none; mail those that are addresses; the page shows the links."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _render_members(request, scope, form=form, status=422)
    given = form.cleaned_data
    made = members.invite_each(
        collection=scope.collection, role=given["role"], author=scope.user, notes=given["people"], days=given["days"]
    )
    # The invitations stand whether or not their mail left: the page shows the links to copy.
    failed = mail_invitations(request, made)
    if failed:
        text = _("The email to %(names)s could not be sent. Copy the links and send them yourself.")
        messages.error(request, text % {"names": ", ".join(one.note for one in failed)})
    return _show_made(scope, made)


@action("admin")
@require_POST
def make_reusable_link(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make a link that several people use, up to a limit and a day."""
    form = ReusableLinkForm(request.POST, prefix="link")
    if not form.is_valid():
        return _render_members(request, scope, link_form=form, status=422)
    made = members.make_reusable_link(collection=scope.collection, author=scope.user, **form.cleaned_data)
    return _show_made(scope, [made])


@action("admin")
@require_POST
def revoke(request: HttpRequest, scope: Scope, invitation: int) -> HttpResponse:
    """Withdraw an invitation: its link stops working."""
    found = get_object_or_404(Invitation, pk=invitation, collection=scope.collection)
    members.revoke_invitation(invitation=found, by=scope.user)
    messages.success(request, _("Invitation withdrawn."))
    return redirect(reverse("members", args=[scope.collection.name]) + "#invitations")


@action("admin")
@require_POST
def join(request: HttpRequest, scope: Scope) -> HttpResponse:
    """An owner becomes a member, to be able to judge."""
    try:
        members.add_member(user=scope.user, collection=scope.collection, role=Role.ADMIN, by=scope.user)
    except BadInput as error:
        return _render_members(request, scope, problem=str(error), status=409)
    messages.success(request, _("You are now a member and can judge pairs."))
    return redirect("members", scope.collection.name)


def _show_made(scope: Scope, made: list[Invitation]) -> HttpResponse:
    """Lead to the People page, which shows these links at its top: loading it again invites nobody twice."""
    numbers = ",".join(str(one.pk) for one in made)
    return redirect(f"{reverse('members', args=[scope.collection.name])}?made={numbers}")


def _render_members(
    request: HttpRequest,
    scope: Scope,
    *,
    form: forms.Form | None = None,
    link_form: forms.Form | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    found, failure = table.read_statistics(scope.collection)
    charts = people_charts(scope.collection.name, found.people or ())
    if file := download(request, charts):
        return file
    order = request.GET.get("order", "")
    invitations: list[dict[str, Any]] = [
        {"row": row, "link": link_of(request, row), "closed": members.why_closed(row)}
        for row in members.open_invitations(scope.collection)
    ]
    asked = set(request.GET.get("made", "").split(","))
    # In the order in which they were made; the list above is newest first.
    made = [one for one in reversed(invitations) if str(one["row"].pk) in asked]
    n = len(made)
    context = {
        "scope": scope,
        "rows": table.list_rows(scope.collection, found.people or (), order),
        "headings": table.list_headings(order),
        "found": found,
        "failure": failure,
        "population": PEOPLE_POPULATION,
        "charts": charts,
        "invitations": invitations,
        "made": made,
        "mailed": any(one["row"].mailed_at for one in made),
        "made_title": ngettext("%(n)s invitation is ready", "%(n)s invitations are ready", n) % {"n": n},
        "form": form or InvitationForm(),
        "link_form": link_form or ReusableLinkForm(prefix="link"),
        "problem": problem,
    }
    return render(request, "people/members.html", context, status=status)
