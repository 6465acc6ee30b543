"""Accounts from invitations and from the command create_users; lockout after wrong passwords; password links."""

import itertools
import logging
import secrets
from collections.abc import Sequence
from smtplib import SMTPException
from typing import Any, NoReturn

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.app_settings import PASSWORD_RESET_TOKEN_GENERATOR
from allauth.account.utils import user_pk_to_url_str
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, SiteScope
from annotation.models import Invitation, Membership, Role, User
from annotation.people.accounts import members, networks, rate_limits, sessions
from annotation.people.accounts.passwords import hashing_turn
from corpus.collections.audit_log import shell_user
from corpus.models import Collection
from jobs.connections import without_connection
from store.sql import execute

logger = logging.getLogger(__name__)

# An advisory lock, so that two commands that create accounts at the same moment do not choose the same names.
NAMES_LOCK = 7_304_118
# The duration of a lockout after five wrong passwords (settings, ACCOUNT_RATE_LIMITS).
LOCKED_SECONDS = 300


class InvitationOnlyAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """allauth's adapter without open sign-up, with a page for locked-out visitors; a mail server is optional."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False, because accounts need an invitation."""
        return False

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Return the account page, which confirms the change."""
        return reverse("account")

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the page after sign-in: in a single collection, for those who judge it, their first pair."""
        if request.user.is_authenticated and not request.user.is_owner:
            own = request.user.memberships.filter(is_active=True).select_related("collection")[:2]
            if len(own) == 1 and own[0].role == Role.VIEWER:
                return reverse("collection", args=[own[0].collection.name])
            if len(own) == 1 and own[0].role < Role.ADMIN:
                return members.first_pair_url(own[0].collection)
        return reverse("home")

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count an attempt, and answer 429 where the name or the address had too many.

        Attempts count for the name before the password is checked, and for the address only if it was
        wrong, so that people at one address with right passwords do not wait for each other.
        """
        if not rate_limits.is_free(request, "login_failed"):
            self._lock_out(request, credentials)
        key = self._get_login_attempts_cache_key(request, **credentials)
        self._login_failed_rl_usage = rate_limits.count(request, "login_failed", "key", key=key)
        if not self._login_failed_rl_usage:
            self._lock_out(request, credentials)

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Count a wrong password for the address; beyond the limit the answer is 429."""
        if not rate_limits.count(request, "login_failed", "ip"):
            self._lock_out(request, credentials)

    def _lock_out(self, request: HttpRequest, credentials: dict[str, Any]) -> NoReturn:
        name = str(credentials.get("username", "")).lower()
        # Each lockout is recorded once.
        if cache.add(f"locked-out:{name}", 1, LOCKED_SECONDS):
            user = User.objects.filter(username__iexact=name).first()
            record(None, "session.locked", concerns=user, address=networks.client_network(request))
        page = render(request, "account/locked.html", {"minutes": LOCKED_SECONDS // 60}, status=429)
        page.headers["Retry-After"] = str(LOCKED_SECONDS)
        raise ImmediateHttpResponse(page)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Check a name and a password in a hashing turn (annotation.people.accounts.passwords).

        Attempts are counted in the turn, before the hash, and no longer once the password was right, so
        that many people who sign in at the same moment are not taken for an attack.
        """
        with hashing_turn():
            user: User | None = super().authenticate(request, **credentials)
        return user

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Return the key of an account's failed sign-ins, which does not depend on the Host header."""
        return f"login:{str(credentials.get('username', '')).lower()}"

    def set_password(self, user: User, password: str) -> None:
        """Set a password, end all other sessions of the user, and end a lockout."""
        super().set_password(user, password)
        self._delete_login_attempts_cached_email(context.request, username=user.username)
        cache.delete(f"locked-out:{user.username.lower()}")
        sessions.end_other_sessions(user, context.request.session.session_key)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail; a failure is only logged, because pages must not reveal who has an account."""
        try:
            with without_connection():
                super().send_mail(template_prefix, email, context)
        except (OSError, SMTPException) as error:
            logger.error("A mail could not be sent: %s", error)


@transaction.atomic
def create_accounts(*, role: str, count: int, collection: Collection | None) -> list[dict[str, str]]:
    """Create accounts and return [{username, password}]; `role`: owner, or a role in `collection`."""
    execute("SELECT pg_advisory_xact_lock(%(lock)s)", lock=NAMES_LOCK)
    # role-1, role-2 and so on: the first names that no account has in any case.
    names = User.objects.filter(username__istartswith=f"{role}-").values_list("username", flat=True)
    taken = {name.lower() for name in names}
    free_names = (name for number in itertools.count(1) if (name := f"{role}-{number}") not in taken)
    accounts = []
    for username in itertools.islice(free_names, count):
        password = secrets.token_urlsafe(12)  # 16 characters, 96 bits.
        user = User.objects.create_user(username=username, password=password, is_owner=role == "owner")
        record(None, "account.made", collection, concerns=user, role=role, shell=shell_user())
        if collection is not None:
            members.add_member(user=user, collection=collection, role=Role[role.upper()])
        accounts.append({"username": username, "password": password})
    return accounts


def is_mail_address(text: str) -> bool:
    """Return whether a text is an address to which mail can be sent."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def invitation_link(request: HttpRequest, invitation: Invitation) -> str:
    """Return the address of an invitation."""
    return request.build_absolute_uri(reverse("invitation", args=[invitation.token]))


def mail_invitations(request: HttpRequest, invitations: Sequence[Invitation]) -> list[Invitation]:
    """Mail the invitations whose note is an email address, if this site sends mail; return those that failed."""
    mailable = (
        [invitation for invitation in invitations if is_mail_address(invitation.note)] if settings.EMAIL_HOST else []
    )
    failed: list[Invitation] = []
    server = get_connection()
    for invitation in mailable:
        name = (
            invitation.collection.title or invitation.collection.name if invitation.collection else request.get_host()
        )
        context = {"invitation": invitation, "link": invitation_link(request, invitation)}
        title = _("Invitation to %(name)s") % {"name": " ".join(name.split())}
        subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + title
        text = render_to_string("accounts/invitation_mail.txt", context).strip() + "\n"
        try:
            with without_connection():
                EmailMessage(subject, text, to=[invitation.note], connection=server).send()
        except (OSError, SMTPException) as error:
            logger.error("An invitation could not be sent: %s", error)
            failed.append(invitation)
            continue
        invitation.mailed_at = timezone.now()
        invitation.save(update_fields=["mailed_at"])
    return failed


def may_hand_link(scope: Scope | SiteScope, person: User) -> bool:
    """Return whether the user of the scope may create a link that sets a person's password.

    Owners may for everybody who is not an owner, admins of collections for members of no other
    collections, because the link gives access to the account. Nobody may for themselves or for an
    owner, whose password `manage.py changepassword` sets.
    """
    if person.is_owner or person.pk == scope.user.pk:
        return False
    if scope.user.is_owner:
        return True
    administered = Membership.objects.filter(user=scope.user, role=Role.ADMIN, is_active=True).values("collection")
    return not person.memberships.exclude(collection__in=administered).exists()


@transaction.atomic
def password_link(request: HttpRequest, scope: Scope | SiteScope, person: User) -> str:
    """Return an address where the person can set a new password once within a day."""
    record(scope, "password.link", concerns=person)
    key = PASSWORD_RESET_TOKEN_GENERATOR().make_token(person)
    values = {"uidb36": user_pk_to_url_str(person), "key": key}
    return request.build_absolute_uri(reverse("account_reset_password_from_key", kwargs=values))
