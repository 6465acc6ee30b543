"""Accounts: one's own page, sessions, mail address, invitations; language and look, chosen by anybody."""

from typing import Any
from urllib.parse import urlsplit

from allauth.account.utils import perform_login
from allauth.account.views import password_reset
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import languages
from annotation.accounts import members, second_factor, sessions, single_sign_on
from annotation.accounts.forms import MailForm, SignUpForm
from annotation.audit_log.recording import record
from annotation.models import Invitation, User
from annotation.permissions import PublicScope, SiteScope, action
from corpus.errors import BadInput


@action("site")
@require_GET
def account(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the signed-in person's account: name and roles, ways to sign in, signed-in devices, and collections."""
    return _render_account(request, scope)


def _render_account(
    request: HttpRequest, scope: SiteScope, mail: MailForm | None = None, *, status: int = 200
) -> HttpResponse:
    joined = scope.user.memberships.filter(is_active=True).select_related("collection").order_by("collection__name")
    context = {
        "scope": scope,
        "memberships": joined,
        "sessions": sessions.sessions_of(scope.user, request.session.session_key),
        "second_factor": second_factor.has_second_factor(scope.user),
        "provider": single_sign_on.name_of_provider(),
        "connection": single_sign_on.connection_of(scope.user) if single_sign_on.is_offered() else None,
        "mail": mail
        or (MailForm(user=scope.user, initial={"email": scope.user.email}) if settings.EMAIL_HOST else None),
    }
    return render(request, "accounts/account.html", context, status=status)


@action("site")
@require_POST
def end_session(request: HttpRequest, scope: SiteScope, session: int) -> HttpResponse:
    """Sign out another device; this browser signs out by its own button."""
    with transaction.atomic():
        # The record and the end of the session stand or fall together.
        if not sessions.end_session(scope.user, session):
            raise Http404("No such session.")
        record(scope, "session.ended", count=1)
    messages.success(request, _("The device has been signed out."))
    return redirect("account")


@action("site")
@require_POST
def end_other_sessions(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Sign out everywhere but here."""
    with transaction.atomic():
        count = sessions.end_others(scope.user, request.session.session_key)
        record(scope, "session.ended", count=count)
    text = ngettext("Signed out on %(count)d other device.", "Signed out on %(count)d other devices.", count)
    messages.success(request, text % {"count": count})
    return redirect("account")


@action("site")
@require_POST
def mail_address(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Change the mail address. It takes the password: a link for a forgotten one goes there."""
    # The address serves only to send a link to; a site without mail has no use for one.
    if not settings.EMAIL_HOST:
        raise Http404("This site sends no mail.")
    form = MailForm(request.POST, user=scope.user)
    if not form.is_valid():
        return _render_account(request, scope, form, status=422)
    with transaction.atomic():
        User.objects.filter(pk=scope.user.pk).update(email=form.cleaned_data["email"])
        # Whether there is one, not which: the log is read by others.
        record(scope, "account.mail", given=bool(form.cleaned_data["email"]))
    messages.success(request, _("Email address saved."))
    return redirect("account")


@action("site")
@require_POST
def disconnect(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Disconnect the account from the sign-in provider."""
    try:
        if single_sign_on.disconnect_provider(scope.user):
            messages.success(request, _("Account disconnected."))
    except BadInput as error:
        messages.error(request, _("No changes made: %(reason)s.") % {"reason": error})
    return redirect("account")


@action("public")
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Accept an invitation, with a new account or with the one that is signed in."""
    invited = get_object_or_404(Invitation.objects.select_related("collection", "invited_by"), token=token)
    context = {"scope": scope, "invitation": invited, "provider": single_sign_on.name_of_provider()}
    # 410 and not 404: the link was one, and the page says why it no longer works.
    if closed := members.why_closed(invited):
        return render(request, "accounts/invitation_closed.html", {**context, "reason": closed}, status=410)
    if scope.user is not None:
        return _join_by_invitation(request, scope.user, invited, context)
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _sign_up(request, form, invited, context)
    status = 422 if request.method == "POST" else 200
    return render(request, "accounts/sign_up.html", {**context, "form": form}, status=status)


def _join_by_invitation(request: HttpRequest, user: User, invited: Invitation, context: dict[str, Any]) -> HttpResponse:
    if request.method == "GET":
        return render(request, "accounts/join.html", context)
    try:
        members.accept_invitation(invitation=invited, user=user)
    except BadInput as error:
        return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
    _greet_member(request, user)
    return redirect(members.home_of(invited))


def _sign_up(request: HttpRequest, form: SignUpForm, invited: Invitation, context: dict[str, Any]) -> HttpResponse:
    username, password = form.cleaned_data["username"], form.cleaned_data["password1"]
    try:
        user = members.sign_up(invitation=invited, username=username, password=password)
    # Two people chose the same name between the check and the insert.
    except IntegrityError:
        form.add_error("username", _("This user name has just been taken. Choose another one."))
        return render(request, "accounts/sign_up.html", {**context, "form": form}, status=422)
    except BadInput as error:
        return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
    _greet_member(request, user)
    response: HttpResponse = perform_login(request, user, redirect_url=members.home_of(invited))
    return response


def _greet_member(request: HttpRequest, user: User) -> None:
    # What comes first (consent, a test) is said by the page that they come to.
    messages.success(request, _("Welcome, %(name)s.") % {"name": user.username})


@action("public")
@require_http_methods(["GET", "POST"])
def request_password_reset(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Send a link by mail, where this site sends mail; else say whom to ask."""
    if not settings.EMAIL_HOST:
        return render(request, "accounts/forgotten.html", {"scope": scope})
    response: HttpResponse = password_reset(request)
    # A redirect is the answer to every valid form, whether the address is known or not: the log says no more than the
    # page.
    if request.method == "POST" and response.status_code == 302:
        record(scope, "password.asked", address=sessions.client_network(request))
    return response


@action("public")
@require_POST
def display(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Keep the choice of language and look, and go back to the page where it was made."""
    response = HttpResponseRedirect(_safe_return_url(request), status=303)
    languages.save_display_choice(scope.user, response, request.POST)
    return response


def _safe_return_url(request: HttpRequest) -> str:
    """The page of this site that the form names, or the start page."""
    wanted = request.POST.get("next", "")
    # Another host would make this page a hop for phishing links.
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        return reverse("home")
    try:
        # A path that no view takes would lead to an error page after a choice that was saved.
        resolve(urlsplit(wanted).path)
    except Resolver404:
        return reverse("home")
    return wanted
