"""The first account of a new site: its owner, created with the one-time token that `serve` prints."""

import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.people.accounts import networks, rate_limits
from annotation.people.accounts.invitations import NAMES_LOCK
from corpus.errors import BadInput
from store.sql import execute


class TooManyTokens(Exception):
    """Too many wrong tokens from a network; it may try again some minutes later."""


def has_no_account() -> bool:
    """Return whether the site has no account, so that a visitor may create its owner."""
    return not User.objects.exists()


def token_file() -> Path:
    """Return the path of the token, which only the site's own system account may read."""
    return Path(settings.VAR) / "first-owner-token"


def read_token() -> str:
    """Return the token; "" where none was made, or it is spent."""
    try:
        return token_file().read_text().strip()
    except FileNotFoundError:
        return ""


def ensure_token() -> str:
    """Return the token of a site without accounts, and make it at the first call; "" once there is an account."""
    if not has_no_account():
        token_file().unlink(missing_ok=True)
        return ""
    token = read_token()
    if not token:
        token = secrets.token_urlsafe(18)
        token_file().unlink(missing_ok=True)
        with os.fdopen(os.open(token_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    return token


def check_token(request: HttpRequest, token: str) -> bool:
    """Return whether this is the token. Wrong ones count towards the limits of the sign-in page, per network.

    Raises TooManyTokens beyond these limits, before the token is looked at.
    """
    network = networks.client_network(request)
    if not rate_limits.is_free(request, "login_failed"):
        raise TooManyTokens
    usage = rate_limits.count(request, "login_failed", "key", key=f"first-owner:{network}")
    if usage is None:
        raise TooManyTokens
    expected = read_token()
    if expected and constant_time_compare(token.strip(), expected):
        usage.rollback()
        return True
    rate_limits.count(request, "login_failed", "ip")
    return False


def create_first_owner(*, username: str, password: str) -> User:
    """Create the owner of a site without accounts, and spend the token. Raises BadInput once there is an account."""
    # Hashed before the transaction, which would hold a connection in the meantime.
    hashed = make_password(password)
    with transaction.atomic():
        # Of two people with the token, and a command that creates accounts, one comes first.
        execute("SELECT pg_advisory_xact_lock(%(lock)s)", lock=NAMES_LOCK)
        if not has_no_account():
            raise BadInput(_("This site already has an account. Sign in, or ask its owner for an invitation."))
        owner = User.objects.create(username=User.normalize_username(username), password=hashed, is_owner=True)
        record(owner, "account.made", way="one-time token", role="owner")
        transaction.on_commit(lambda: token_file().unlink(missing_ok=True))
    return owner
