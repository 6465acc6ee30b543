"""Accounts: one's own page, and invitations."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import accounts, members
from annotation.forms import SignUpForm
from annotation.models import Invitation, User
from annotation.permissions import PublicScope, SiteScope, action
from corpus.errors import BadInput


@action("site")
@require_GET
def account(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Who one is here, and one's collections."""
    joined = scope.user.memberships.filter(is_active=True).select_related("collection").order_by("collection__name")
    return render(request, "accounts/account.html", {"scope": scope, "memberships": joined})


@action("own-site")
@require_POST
def reset_password(request: HttpRequest, scope: SiteScope, user: int) -> HttpResponse:
    """For a member who forgot their password: a new one, shown this once. Owners change their own on their page."""
    person = get_object_or_404(User, pk=user, is_owner=False)
    context = {"scope": scope, "person": person, "password": accounts.reset_password(person)}
    return render(request, "accounts/new_password.html", context)


@action("public")
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Accept an invitation: with a new account, or with the one that is signed in."""
    invited = get_object_or_404(Invitation.objects.select_related("collection", "invited_by"), token=token)
    context = {"scope": scope, "invitation": invited}
    if closed := members.why_closed(invited):
        return render(request, "accounts/invitation_closed.html", {**context, "reason": closed}, status=410)
    if scope.user is not None:
        return _join(request, scope.user, invited, context)
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _sign_up(request, form, invited, context)
    status = 422 if request.method == "POST" else 200
    return render(request, "accounts/sign_up.html", {**context, "form": form}, status=status)


def _join(request: HttpRequest, user: User, invited: Invitation, context: dict[str, object]) -> HttpResponse:
    if request.method == "GET":
        return render(request, "accounts/join.html", context)
    try:
        members.accept(invitation=invited, user=user)
    except BadInput as error:
        return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
    return _welcome(request, invited)


def _sign_up(request: HttpRequest, form: SignUpForm, invited: Invitation, context: dict[str, object]) -> HttpResponse:
    username, password = form.cleaned_data["username"], form.cleaned_data["password1"]
    try:
        user = members.sign_up(invitation=invited, username=username, password=password)
    except IntegrityError:
        form.add_error("username", "This user name was taken a moment ago. Choose another.")
        return render(request, "accounts/sign_up.html", {**context, "form": form}, status=422)
    except BadInput as error:
        return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return _welcome(request, invited)


def _welcome(request: HttpRequest, invited: Invitation) -> HttpResponse:
    messages.success(request, "Welcome. You can start right away.")
    return redirect("collection", invited.collection.name) if invited.collection else redirect("home")
