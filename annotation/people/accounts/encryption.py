"""Encryption of stored secrets, with a key derived from SECRET_KEY for each purpose."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

Undecipherable = InvalidToken


def encrypt_text(text: str, purpose: str) -> str:
    """Encrypt a secret, so that a stolen database alone does not reveal it."""
    return _build_cipher(purpose).encrypt(text.encode()).decode()


def decrypt_text(encrypted: str, purpose: str) -> str:
    """Decrypt a secret, with SECRET_KEY or one of SECRET_KEY_FALLBACKS. Raises Undecipherable."""
    return _build_cipher(purpose).decrypt(encrypted.encode()).decode()


def _build_cipher(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    digests = (hashlib.sha256(f"{purpose}\0{key!s}".encode()).digest() for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
