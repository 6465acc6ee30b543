"""Audit log entries of events inside Django and allauth: sign-ins, passwords, second factors, connections.

Both announce events by signals, so this is the only module with receivers. Each only appends to the audit log.
"""

from typing import Any

from allauth.account import signals as accounts
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.socialaccount import signals as socialaccounts
from django.contrib.auth import signals as auth
from django.dispatch import Signal, receiver
from django.http import HttpRequest

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.people.accounts import networks

TOTP, RECOVERY_CODES = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES

# Signals of which only the person is recorded. `authenticator_reset` replaces the recovery codes.
PLAIN_ACTS = {
    auth.user_logged_out: "session.out",
    accounts.password_changed: "password.changed",
    accounts.password_reset: "password.reset",
    mfa.authenticator_reset: "recovery-codes.made",
}
# The use of a recovery code is recorded, because it suggests a lost phone; the use of ordinary codes is
# part of signing in, and the removal of recovery codes goes with that of the app.
FACTOR_ACTS = {
    (mfa.authenticator_added, TOTP): "second-factor.on",
    (mfa.authenticator_added, RECOVERY_CODES): "recovery-codes.made",
    (mfa.authenticator_removed, TOTP): "second-factor.off",
    (mfa.authenticator_used, RECOVERY_CODES): "recovery-code.used",
}


@receiver(auth.user_logged_in)
def signed_in(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Record a sign-in by password, link or provider."""
    record(user, "session.in", address=networks.client_network(request))


@receiver(list(PLAIN_ACTS))
def record_plain_act(sender: Any, user: User | None, signal: Signal, **kwargs: Any) -> None:
    """Record an event of which only the person is stored."""
    if user is not None:
        record(user, PLAIN_ACTS[signal])


@receiver(auth.user_login_failed)
def record_failed_sign_in(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    """Record the account of a failed sign-in. The typed name is not stored, because it may be a password."""
    user = User.objects.filter(username__iexact=str(credentials.get("username", ""))).first()
    record(None, "session.failed", concerns=user, address=networks.client_network(request) if request else "")


@receiver([signal for signal, _kind in FACTOR_ACTS])
def record_factor(sender: Any, user: User, authenticator: Authenticator, signal: Signal, **kwargs: Any) -> None:
    """Record a change or use of a second factor that is listed in FACTOR_ACTS."""
    if act := FACTOR_ACTS.get((signal, authenticator.type)):
        record(user, act)


@receiver(mfa.authentication_failed)
def failed_factor(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Record a sign-in with the right password and a wrong code."""
    record(None, "session.failed", concerns=user, step="second factor", address=networks.client_network(request))


@receiver(socialaccounts.social_account_added)
def record_provider_connection(sender: Any, sociallogin: Any, **kwargs: Any) -> None:
    """Record that an existing account was connected to the sign-in provider."""
    record(sociallogin.user, "provider.connected")
