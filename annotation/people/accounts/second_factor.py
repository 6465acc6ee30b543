"""Two-factor authentication: one-time codes of an app (TOTP), and recovery codes."""

from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotation.models import User
from annotation.people.accounts.encryption import decrypt_text, encrypt_text

PURPOSE = "second factor"
REPLAY_SECONDS = 120  # Longer than a code is valid: its half minute, and one on either side.
QUIET_ZONE = 4


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """allauth's adapter for second factors: secrets are stored encrypted, and the QR code is plain SVG (strict CSP)."""

    def encrypt(self, text: str) -> str:
        """Encrypt a secret with a key derived from SECRET_KEY."""
        return encrypt_text(text, PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret, with SECRET_KEY or one of SECRET_KEY_FALLBACKS."""
        return decrypt_text(encrypted_text, PURPOSE)

    def build_totp_svg(self, url: str) -> SafeString:
        """Return the QR code for authenticator apps, with dark modules on white (ISO/IEC 18004)."""
        # Loaded here, because only this page draws one.
        import qrcode

        code = qrcode.QRCode(border=QUIET_ZONE, error_correction=qrcode.constants.ERROR_CORRECT_M)
        code.add_data(url)
        rows = code.get_matrix()
        path = "".join(f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, dark in enumerate(row) if dark)
        return format_html(
            '<svg class="qr" viewBox="0 0 {size} {size}" width="220" height="220" role="img" aria-label="{label}" '
            'shape-rendering="crispEdges"><rect width="{size}" height="{size}" fill="#fff"/>'
            '<path d="{path}" fill="#000"/></svg>',
            size=len(rows),
            label=_("QR code for your authenticator app. The key below contains the same information."),
            path=path,
        )


class _SingleUseCode:
    """Mixin of forms that accept a code once: allauth remembers it for 30 seconds, but it can be valid for longer."""

    user: User

    def clean_code(self) -> Any:
        code = super().clean_code()  # type: ignore[misc]  # a mixin of allauth's forms
        # `add` is atomic, so only one of two requests with the same code succeeds.
        if not cache.add(f"second-factor:{self.user.pk}:{str(code).strip()}", 1, REPLAY_SECONDS):
            raise get_adapter().validation_error("incorrect_code")
        return code


class SignInForm(_SingleUseCode, AuthenticateForm):  # type: ignore[misc]
    """The form for the code after the password."""


class ConfirmForm(_SingleUseCode, ReauthenticateForm):  # type: ignore[misc]
    """The form for the code before a sensitive action."""


def remove(user: User) -> int:
    """Remove an account's second factor and recovery codes; return the number of removed rows."""
    deleted, _counts = Authenticator.objects.filter(user=user).delete()
    return int(deleted)
