"""Encryption of stored secrets (Fernet), with a key derived from a secret of the instance for each purpose."""

import base64
import hashlib
from collections.abc import Iterable

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

Undecipherable = InvalidToken


def build_cipher(secrets: Iterable[str], purpose: str) -> MultiFernet:
    """Return the cipher that encrypts with the first secret, and decrypts with any of them."""
    digests = (hashlib.sha256(f"{purpose}\0{secret}".encode()).digest() for secret in secrets)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
