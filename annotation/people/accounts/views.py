"""Pages of accounts: a user's own account, invitations, the sign-in provider, the site's accounts, refused forms."""

from urllib.parse import urlsplit

from allauth.account.utils import perform_login
from allauth.account.views import login as sign_in_view
from allauth.account.views import password_reset
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseRedirect
from django.middleware.csrf import REASON_BAD_ORIGIN, REASON_NO_CSRF_COOKIE
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from requests import RequestException

from annotation.access import languages, unsent_forms
from annotation.access.audit_log.recording import record
from annotation.access.permissions import PublicScope, Scope, SiteScope, action, administered_collections
from annotation.models import Invitation, User
from annotation.people.accounts import (
    first_owner,
    invitations,
    members,
    networks,
    sessions,
    single_sign_on,
    site_accounts,
)
from annotation.people.accounts.forms import FirstOwnerForm, InboxMailForm, MailForm, SignUpForm
from corpus.errors import BadInput


@action("site", "GET")
def account(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the signed-in person's account: name and roles, ways to sign in, signed-in devices, and collections."""
    mail = MailForm(user=scope.user, initial={"email": scope.user.email}) if settings.EMAIL_HOST else None
    return _render_account(request, scope, mail)


def _render_account(
    request: HttpRequest, scope: SiteScope, mail: MailForm | None, *, status: int = 200
) -> HttpResponse:
    memberships = scope.user.memberships.filter(is_active=True).select_related("collection")
    context = {
        "scope": scope,
        "memberships": memberships.order_by("collection__name"),
        "sessions": sessions.list_devices(scope.user, request.session.session_key),
        "second_factor": Authenticator.objects.filter(user=scope.user, type=Authenticator.Type.TOTP).exists(),
        "provider": single_sign_on.name_of_provider(),
        "connection": SocialAccount.objects.filter(user=scope.user).first() if settings.OIDC_URL else None,
        "mail": mail,
        "zone": request.COOKIES.get("zone", ""),
        "zones": languages.list_zones(),
        "administers": administered_collections(scope.user).exists(),
        "inbox_mail": InboxMailForm(initial={"inbox_mail": scope.user.inbox_mail}) if _gets_inbox_mail(scope) else None,
    }
    return render(request, "accounts/account.html", context, status=status)


@action("site", "POST")
def end_session(request: HttpRequest, scope: SiteScope, session: int) -> HttpResponse:
    """Sign out another device."""
    with transaction.atomic():
        if not sessions.end_session(scope.user, session):
            raise Http404("No such session.")
        record(scope, "session.ended", count=1)
    messages.success(request, _("The device has been signed out."))
    return redirect("account")


@action("site", "POST")
def end_other_sessions(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Sign out all devices but this one."""
    with transaction.atomic():
        count = sessions.end_other_sessions(scope.user, request.session.session_key)
        record(scope, "session.ended", count=count)
    text = ngettext("Signed out on %(count)d other device.", "Signed out on %(count)d other devices.", count)
    messages.success(request, text % {"count": count})
    return redirect("account")


@action("site", "POST")
def mail_address(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Change the mail address. The form asks for the password, because links for a forgotten one go to the address."""
    # The address is used for nothing but mail.
    if not settings.EMAIL_HOST:
        raise Http404("This site sends no mail.")
    form = MailForm(request.POST, user=scope.user)
    if not form.is_valid():
        return _render_account(request, scope, form, status=422)
    with transaction.atomic():
        User.objects.filter(pk=scope.user.pk).update(email=form.cleaned_data["email"])
        # The address itself is not recorded, because others read the audit log.
        record(scope, "account.mail", given=bool(form.cleaned_data["email"]))
    messages.success(request, _("Email address saved."))
    return redirect("account")


def _gets_inbox_mail(scope: SiteScope) -> bool:
    """Return whether this site sends mail and the person has a collection."""
    has_collection = scope.user.is_owner or scope.user.memberships.filter(is_active=True).exists()
    return bool(settings.EMAIL_HOST) and has_collection


@action("site", "POST")
def inbox_mail(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Choose when to get mail about what is new in one's collections."""
    if not _gets_inbox_mail(scope):
        raise Http404("No mail about collections.")
    form = InboxMailForm(request.POST)
    if form.is_valid():
        choice = form.cleaned_data["inbox_mail"]
        with transaction.atomic():
            # A worker does not know under which address people open the site.
            site = request.build_absolute_uri("/").rstrip("/")
            User.objects.filter(pk=scope.user.pk).update(inbox_mail=choice, inbox_site=site)
            record(scope, "account.inbox-mail", when=choice or "never")
        messages.success(request, _("Saved."))
    return redirect("account")


@action("site", "POST")
def disconnect(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Disconnect the account from the sign-in provider."""
    try:
        if single_sign_on.disconnect_provider(scope.user):
            messages.success(request, _("Account disconnected."))
    except BadInput as error:
        messages.error(request, _("No changes made: %(reason)s.") % {"reason": error})
    return redirect("account")


@action("public")
def sign_in(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Sign in; on a site without accounts, redirect to the page that creates the first owner."""
    if scope.user is None and first_owner.has_no_account():
        return redirect("first_owner")
    response: HttpResponse = sign_in_view(request)
    return response


@action("public", "GET", "POST")
def create_first_owner(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Show the form of the first owner of a site without accounts.

    POST creates the account, signs it in and redirects to the form of the first collection.
    """
    if not first_owner.has_no_account():
        return redirect("home")
    form = FirstOwnerForm(request.POST or None)
    status = 422 if request.method == "POST" else 200
    if request.method == "POST" and form.is_valid():
        username, password = form.cleaned_data["username"], form.cleaned_data["password1"]
        try:
            if first_owner.check_token(request, form.cleaned_data["token"]):
                owner = first_owner.create_first_owner(username=username, password=password)
                response: HttpResponse = perform_login(request, owner, redirect_url=reverse("new_collection"))
                return response
            # Of two requests with the right token, the second finds the owner that the first has created.
            if not first_owner.has_no_account():
                return redirect("home")
            form.add_error("token", _("This is not the token. Copy the one that the newest start printed."))
        except first_owner.TooManyTokens:
            form.add_error("token", _("Too many wrong tokens. Try again in a few minutes."))
            status = 429
        except BadInput as error:
            messages.error(request, str(error))
            return redirect("account_login")
    return render(request, "accounts/first_owner.html", {"scope": scope, "form": form}, status=status)


@action("public", "GET", "POST")
def invitation(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Show an invitation; POST accepts it with a new account, or with the one that is signed in."""
    invited = get_object_or_404(Invitation.objects.select_related("collection", "invited_by"), token=token)
    context = {"scope": scope, "invitation": invited, "provider": single_sign_on.name_of_provider()}
    # 410 and not 404, because the link was valid once; the page says why it no longer is.
    if reason := members.why_closed(invited):
        return render(request, "accounts/invitation_closed.html", {**context, "reason": reason}, status=410)
    if scope.user is not None:
        if request.method == "GET":
            return render(request, "accounts/join.html", context)
        try:
            members.accept_invitation(invitation=invited, user=scope.user)
        except BadInput as error:
            return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
        _greet_member(request, scope.user)
        return redirect(members.home_of(invited))
    form = SignUpForm(request.POST or None, initial={"username": members.suggest_name(invited)})
    if request.method == "POST" and form.is_valid():
        username, password = form.cleaned_data["username"], form.cleaned_data["password1"]
        try:
            user = members.sign_up(invitation=invited, username=username, password=password)
        # Another person has taken the name since the form was validated.
        except IntegrityError:
            form.add_error("username", _("This user name has just been taken. Choose another one."))
            return render(request, "accounts/sign_up.html", {**context, "form": form}, status=422)
        except BadInput as error:
            return render(request, "accounts/invitation_closed.html", {**context, "reason": str(error)}, status=409)
        _greet_member(request, user)
        response: HttpResponse = perform_login(request, user, redirect_url=members.home_of(invited))
        return response
    status = 422 if request.method == "POST" else 200
    return render(request, "accounts/sign_up.html", {**context, "form": form}, status=status)


def _greet_member(request: HttpRequest, user: User) -> None:
    messages.success(request, _("Welcome, %(name)s.") % {"name": user.username})


@action("public", "GET", "POST")
def request_password_reset(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Send a password link by mail; where this site sends no mail, say whom to ask."""
    if not settings.EMAIL_HOST:
        return render(request, "accounts/forgotten.html", {"scope": scope})
    response: HttpResponse = password_reset(request)
    # Whether an account has the address is not revealed: every valid form is answered with a redirect, and recorded.
    if request.method == "POST" and response.status_code == 302:
        record(scope, "password.asked", address=networks.client_network(request))
    return response


@action("public", "POST")
def display(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Save the choice of language and appearance, and return to the page of the form."""
    back = request.POST.get("next", "")
    try:
        # Without this check a wrong path would lead to an error page.
        resolve(urlsplit(back).path)
    except (Resolver404, ValueError):
        back = ""
    # A redirect to another host could be used for phishing.
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = reverse("home")
    response = HttpResponseRedirect(back, status=303)
    languages.save_display_choice(scope.user, response, request.POST)
    return response


# Signing in by the OpenID Connect provider


@action("public", "GET", "POST")
def login(request: HttpRequest, scope: PublicScope, provider_id: str) -> HttpResponse:
    """Redirect to the provider after a confirmation, without which another site could start a sign-in."""
    return _run_provider_view(request, scope, OAuth2LoginView, provider_id)


@action("public", "GET")
def callback(request: HttpRequest, scope: PublicScope, provider_id: str) -> HttpResponse:
    """Complete a sign-in: exchange the provider's code for an id_token."""
    return _run_provider_view(request, scope, OAuth2CallbackView, provider_id)


@action("public", "POST")
def start_invited_login(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Accept an invitation with an account of the provider: redirect to the provider."""
    invitation = get_object_or_404(Invitation, token=token)
    if not settings.OIDC_URL or members.why_closed(invitation):
        return redirect("invitation", token)
    request.session[single_sign_on.INVITED] = token
    try:
        provider = single_sign_on.SingleSignOnAdapter(request).get_provider(request, "openid_connect")
        # A person who has an account already returns to the invitation and accepts it with that account.
        response: HttpResponse = provider.redirect(request, process="login", next_url=f"/invitations/{token}/")
    except (RequestException, KeyError, ValueError):
        return _render_provider_error(request, scope)
    return response


@action("public", "GET")
def cancelled(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Redirect to the sign-in page after a sign-in was cancelled at the provider."""
    return redirect("account_login")


def _run_provider_view(request: HttpRequest, scope: PublicScope, view: type, provider_id: str) -> HttpResponse:
    try:
        adapter = single_sign_on.OpenIDConnect(request, provider_id)
        response: HttpResponse = view.adapter_view(adapter)(request)  # type: ignore[attr-defined]  # allauth's
    # allauth finds the provider by the name in the address, which may be wrong.
    except SocialApp.DoesNotExist:
        raise Http404("No such provider.") from None
    except BadInput:
        return redirect("account_login")
    except (RequestException, KeyError, ValueError):
        return _render_provider_error(request, scope)
    return response


def _render_provider_error(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Render the error page for a provider that does not answer, or not as expected."""
    return render(request, "socialaccount/authentication_error.html", {"scope": scope}, status=502)


# Accounts of the site for owners, and password links


@action("own-site", "GET")
def people(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """List the accounts by name, with search."""
    # User names have at most 150 characters.
    search, after = request.GET.get("search", "")[:150], request.GET.get("after", "")[:150]
    accounts = list(site_accounts.list_accounts(search, after))
    listed_accounts = accounts[: site_accounts.PAGE_SIZE]
    context = {
        "scope": scope,
        "people": listed_accounts,
        "search": search,
        "after": listed_accounts[-1].username if len(accounts) > site_accounts.PAGE_SIZE else "",
        "is_first": not after,
    }
    return render(request, "accounts/people.html", context)


@action("own-site", "POST")
def control_account(request: HttpRequest, scope: SiteScope, user: int, act: str) -> HttpResponse:
    """Perform an action of site_accounts.ACCOUNT_ACTIONS on an account."""
    if act not in site_accounts.ACCOUNT_ACTIONS:
        raise Http404("Unknown action.")
    person = get_object_or_404(User, pk=user)
    account_action = site_accounts.ACCOUNT_ACTIONS[act]
    name = person.username
    try:
        withdrawn = account_action.perform(person, by=scope.user)
        message = _(account_action.confirmation) % {"name": name, "old": name, "new": person.username}
        messages.success(request, f"{message} {withdrawn or ''}".strip())
    except BadInput as error:
        messages.error(request, _("No changes made: %(reason)s.") % {"reason": error})
    return redirect("site_accounts")


@action("own-site", "POST")
def password_link(request: HttpRequest, scope: SiteScope, user: int) -> HttpResponse:
    """Create a password link for an account that has no owner role."""
    return _render_password_link(request, scope, get_object_or_404(User, pk=user))


@action("admin", "POST")
def make_member_password_link(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Create a password link for a member of collections that this admin administers."""
    return _render_password_link(request, scope, scope.find_member(member).user)


def _render_password_link(request: HttpRequest, scope: Scope | SiteScope, person: User) -> HttpResponse:
    context: dict[str, object] = {"scope": scope, "person": person}
    if not invitations.may_hand_link(scope, person):
        return render(request, "accounts/no_link.html", context, status=409)
    context["link"] = invitations.password_link(request, scope, person)
    return render(request, "accounts/password_link.html", context)


# Forms that were refused: sent after the session had ended, or without a valid CSRF token


# The beginning of Django's message, up to the origin.
BAD_ORIGIN = REASON_BAD_ORIGIN.partition("%s")[0]


@action("site", "GET", "POST")
def unsent_form(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show a form that was sent after the session had ended, to send it again; POST discards it."""
    if request.method == "POST":
        form = unsent_forms.read(request)
        unsent_forms.forget(request)
        return redirect(form.page if form else "home")
    return render(request, "accounts/unsent_form.html", {"scope": scope, "kept": unsent_forms.read(request)})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Render why a form was refused, and what helps: cookies, reloading the page, or a setting of the site."""
    origin = request.META.get("HTTP_ORIGIN", "")
    context = {
        "origin": origin if reason.startswith(BAD_ORIGIN) and origin != "null" else "",
        "no_cookie": reason == REASON_NO_CSRF_COOKIE,
        "cookie": settings.CSRF_COOKIE_NAME,
    }
    return HttpResponseForbidden(render_to_string("403_csrf.html", context, request))
