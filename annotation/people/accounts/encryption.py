"""Encryption of stored secrets, with a key derived from SECRET_KEY for each purpose."""

from cryptography.fernet import MultiFernet
from django.conf import settings

from corpus.collections import ciphers

Undecipherable = ciphers.Undecipherable


def encrypt_text(text: str, purpose: str) -> str:
    """Encrypt a secret, so that a stolen database alone does not reveal it."""
    return _build_cipher(purpose).encrypt(text.encode()).decode()


def decrypt_text(encrypted: str, purpose: str) -> str:
    """Decrypt a secret, with SECRET_KEY or one of SECRET_KEY_FALLBACKS. Raises Undecipherable."""
    return _build_cipher(purpose).decrypt(encrypted.encode()).decode()


def _build_cipher(purpose: str) -> MultiFernet:
    return ciphers.build_cipher(map(str, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]), purpose)
