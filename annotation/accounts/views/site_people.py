"""People of the site: what owners see of accounts and do to them, and links to new passwords."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.accounts import invitations, site_people
from annotation.models import User
from annotation.permissions import Scope, SiteScope, action
from corpus.errors import BadInput


@action("own-site")
@require_GET
def people(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Accounts by name, with search; keyset pages."""
    # No user name is longer than 150 characters.
    search, after = request.GET.get("search", "")[:150], request.GET.get("after", "")[:150]
    found = list(site_people.list_users(search, after))
    rows = found[: site_people.PAGE]
    context = {
        "scope": scope,
        "people": rows,
        "search": search,
        "after": rows[-1].username if len(found) > site_people.PAGE else "",
        "is_first": not after,
    }
    return render(request, "accounts/people.html", context)


@action("own-site")
@require_POST
def control_account(request: HttpRequest, scope: SiteScope, user: int, act: str) -> HttpResponse:
    """Do an owner's act on an account.

    Acts: stop, start, end-sessions, remove-second-factor, make-owner, unmake-owner, pseudonymise.
    """
    if act not in site_people.ACTS:
        raise Http404("Unknown action.")
    person = get_object_or_404(User, pk=user)
    work, sentence = site_people.ACTS[act]
    name = person.username
    try:
        withdrawn = work(person, by=scope.user)
        told = _(sentence) % {"name": name, "old": name, "new": person.username}
        messages.success(request, f"{told} {withdrawn or ''}".strip())
    except BadInput as error:
        messages.error(request, _("No changes made: %(reason)s.") % {"reason": error})
    return redirect("site_people")


@action("own-site")
@require_POST
def password_link(request: HttpRequest, scope: SiteScope, user: int) -> HttpResponse:
    """An owner makes a link for anybody who is no owner."""
    return _render_password_link(request, scope, get_object_or_404(User, pk=user))


@action("admin")
@require_POST
def member_password_link(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """An admin makes a link for a member who belongs to nothing that this admin does not rule over."""
    return _render_password_link(request, scope, scope.find_member(member).user)


def _render_password_link(request: HttpRequest, scope: Scope | SiteScope, person: User) -> HttpResponse:
    context: dict[str, object] = {"scope": scope, "person": person}
    if not invitations.may_hand_link(scope, person):
        return render(request, "accounts/no_link.html", context, status=409)
    context["link"] = invitations.password_link(request, scope, person)
    return render(request, "accounts/password_link.html", context)
