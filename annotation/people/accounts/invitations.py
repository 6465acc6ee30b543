"""Accounts come from invitations and from `create_users`: sign-up is closed. Lockout, and links to new passwords."""

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
from annotation.people.accounts import members, rate_limits, sessions
from annotation.people.accounts.passwords import hashing_turn
from corpus.collections.audit_log import shell_user
from corpus.models import Collection
from jobs.connections import without_connection
from store.sql import execute

logger = logging.getLogger(__name__)

# Advisory lock: two commands that make accounts at once take their names one after the other.
NAMES_LOCK = 7_304_118
# How long five wrong passwords close an account's door (settings, ACCOUNT_RATE_LIMITS).
LOCKED_SECONDS = 300


class InvitationOnlyAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Refuses open sign-up, shows a page to who is locked out, and lives without a mail server."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: an account comes from an invitation alone."""
        return False

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """The account page says that it worked."""
        return reverse("account")

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the page that opens after sign-in; for members of one collection who only judge, their first pair."""
        # Two are enough to know that there is more than one.
        if request.user.is_authenticated and not request.user.is_owner:
            own = request.user.memberships.filter(is_active=True).select_related("collection")[:2]
            if len(own) == 1 and own[0].role < Role.ADMIN:
                return members.first_pair_url(own[0].collection)
        return reverse("home")

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Check a password, unless this name is locked out after too many tries. Each lockout is recorded once.

        A try counts for the name before it is checked, and for the address once it was wrong: who
        signs in from one address with right passwords does not wait for each other's counting.
        """
        if not rate_limits.is_free(request, "login_failed"):
            self._lock_out(request, credentials)
        key = self._get_login_attempts_cache_key(request, **credentials)
        self._login_failed_rl_usage = rate_limits.count(request, "login_failed", "key", key=key)
        if not self._login_failed_rl_usage:
            self._lock_out(request, credentials)

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Count a wrong password for the address. Of those that come at once, none beyond the limit is told so."""
        if not rate_limits.count(request, "login_failed", "ip"):
            self._lock_out(request, credentials)

    def _lock_out(self, request: HttpRequest, credentials: dict[str, Any]) -> NoReturn:
        name = str(credentials.get("username", "")).lower()
        # Once for each lockout, however often the page is asked for meanwhile.
        if cache.add(f"locked-out:{name}", 1, LOCKED_SECONDS):
            user = User.objects.filter(username__iexact=name).first()
            record(None, "session.locked", concerns=user, address=sessions.client_network(request))
        page = render(request, "account/locked.html", {"minutes": LOCKED_SECONDS // 60}, status=429)
        page.headers["Retry-After"] = str(LOCKED_SECONDS)
        raise ImmediateHttpResponse(page)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Check a name and a password in a turn of its own (annotation.people.accounts.passwords).

        A try counts before its hash, and no more when the password was right: only those whose turn
        it is are counted so, and a room full of people with right passwords is no attack.
        """
        with hashing_turn():
            user: User | None = super().authenticate(request, **credentials)
        return user

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Return the key of failed sign-ins: one per account, however the Host header spells the site's address."""
        return f"login:{str(credentials.get('username', '')).lower()}"

    def set_password(self, user: User, password: str) -> None:
        """A new password ends all sessions but the one that chose it, and opens a locked door."""
        super().set_password(user, password)
        self._delete_login_attempts_cached_email(context.request, username=user.username)
        cache.delete(f"locked-out:{user.username.lower()}")
        sessions.end_others(user, context.request.session.session_key)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """A mail server that is away goes to the log: no page may tell who has an account."""
        try:
            with without_connection():
                super().send_mail(template_prefix, email, context)
        except (OSError, SMTPException) as error:
            logger.error("A mail could not be sent: %s", error)


@transaction.atomic
def create_accounts(*, role: str, count: int, collection: Collection | None) -> list[dict[str, str]]:
    """`count` new accounts [{username, password}]; `role` is owner, or a role in `collection`."""
    execute("SELECT pg_advisory_xact_lock(%(lock)s)", lock=NAMES_LOCK)
    # role-1, role-2 ...: the first that no account has, in any case.
    names = User.objects.filter(username__istartswith=f"{role}-").values_list("username", flat=True)
    taken = {name.lower() for name in names}
    free = (name for number in itertools.count(1) if (name := f"{role}-{number}") not in taken)
    accounts = []
    for username in itertools.islice(free, count):
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


def link_of(request: HttpRequest, invitation: Invitation) -> str:
    """The address that the invited person opens."""
    return request.build_absolute_uri(reverse("invitation", args=[invitation.token]))


def mail_invitations(request: HttpRequest, made: Sequence[Invitation]) -> list[Invitation]:
    """Mail stored invitations whose note is an address, where this site sends mail; return those that failed."""
    asked = [one for one in made if is_mail_address(one.note)] if settings.EMAIL_HOST else []
    failed: list[Invitation] = []
    server = get_connection()
    for one in asked:
        where = one.collection.title or one.collection.name if one.collection else request.get_host()
        context = {"invitation": one, "link": link_of(request, one)}
        words = _("Invitation to %(name)s") % {"name": " ".join(where.split())}
        subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + words
        text = render_to_string("accounts/invitation_mail.txt", context).strip() + "\n"
        try:
            with without_connection():
                EmailMessage(subject, text, to=[one.note], connection=server).send()
        except (OSError, SMTPException) as error:
            logger.error("An invitation could not be sent: %s", error)
            failed.append(one)
            continue
        one.mailed_at = timezone.now()
        one.save(update_fields=["mailed_at"])
    return failed


def may_hand_link(scope: Scope | SiteScope, person: User) -> bool:
    """Return whether somebody may create a link that sets a person's password.

    Owners, for everybody who is no owner. Admins of a collection, for those who have nothing but
    what these admins rule over themselves: a link is a way into the account. Nobody for themselves,
    and nobody for an owner (`manage.py changepassword` does that).
    """
    if person.is_owner or person.pk == scope.user.pk:
        return False
    if scope.user.is_owner:
        return True
    ruled = Membership.objects.filter(user=scope.user, role=Role.ADMIN, is_active=True).values("collection")
    return not person.memberships.exclude(collection__in=ruled).exists()


@transaction.atomic
def password_link(request: HttpRequest, scope: Scope | SiteScope, person: User) -> str:
    """An address where `person` sets a new password, once, within a day."""
    record(scope, "password.link", concerns=person)
    key = PASSWORD_RESET_TOKEN_GENERATOR().make_token(person)
    values = {"uidb36": user_pk_to_url_str(person), "key": key}
    return request.build_absolute_uri(reverse("account_reset_password_from_key", kwargs=values))
