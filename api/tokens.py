"""Creating, finding and revoking access tokens: `quorum_` and 43 random characters, stored as SHA-256."""

import secrets
from collections.abc import Collection as Several
from datetime import timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import User
from api.models import AccessToken
from corpus.errors import BadInput
from corpus.models import Collection

# Lets secret scanners recognise a token that was committed by mistake.
PREFIX = "quorum_"
# A year, even a leap year: forgotten tokens expire.
LONGEST_DAYS = 366
# Valid tokens of one person at the same time.
MOST = 50
# `last_used_at` is written at most once a minute.
MINUTE = timedelta(minutes=1)


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token. With its 256 random bits a slow hash would add nothing."""
    return sha256(token.encode()).hexdigest()


@transaction.atomic
def make_token(
    user: User, collection: Collection | None, *, name: str, scopes: Several[str], days: int
) -> tuple[AccessToken, str]:
    """Create a token; return its row and the token itself, which is not stored. Raises BadInput."""
    if current_tokens(user).count() >= MOST:
        raise BadInput(_("You have %(count)s valid tokens: revoke one first.") % {"count": MOST})
    token = PREFIX + secrets.token_urlsafe(32)
    row = AccessToken.objects.create(
        user=user,
        collection=collection,
        name=name,
        digest=digest_of(token),
        scopes=sorted(scopes),
        expires_at=timezone.now() + timedelta(days=days),
    )
    record(user, "token.made", collection, token=row.pk, scopes=row.scopes, days=days)
    return row, token


def current_tokens(user: User) -> QuerySet[AccessToken]:
    """Return the person's tokens that are neither revoked nor expired."""
    return AccessToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())


def find_token(token: str) -> AccessToken | None:
    """Return the row of a valid token whose person may sign in; None for any other text."""
    # Tokens of other services need no query.
    if not token.startswith(PREFIX):
        return None
    rows = AccessToken.objects.select_related("user", "collection")
    row = rows.filter(digest=digest_of(token), revoked_at=None, user__is_active=True).first()
    now = timezone.now()
    if row is None or row.expires_at <= now:
        return None
    if row.last_used_at is None or row.last_used_at < now - MINUTE:
        # Only this column, so that a concurrent revocation is not overwritten.
        AccessToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def bearer_token(request: HttpRequest) -> AccessToken | None:
    """Return the valid token of a request's Authorization header, if any."""
    kind, _blank, token = request.headers.get("Authorization", "").partition(" ")
    return find_token(token) if kind.lower() == "bearer" else None


@transaction.atomic
def revoke_token(row: AccessToken, *, by: User | None = None) -> None:
    """Revoke a token; repeating it changes nothing. `by`: the person who revokes it, if not its owner."""
    # The condition is in the UPDATE, so that only one of two concurrent revocations writes to the audit log.
    if AccessToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=timezone.now()):
        concerns = None if by is None else row.user
        record(by or row.user, "token.revoked", row.collection, concerns=concerns, token=row.pk)
