"""Encrypting and decrypting stored keys, each bound to its name and the one address to which it may be sent.

Off unless QUORUM_STORED_KEYS_SECRET is set. The process that makes a call decrypts the key for it, and no other.
"""

import json

from django.conf import settings
from django.utils.translation import gettext as _

from corpus.collections.ciphers import Undecipherable, build_cipher
from corpus.errors import BadInput

STORED = "stored:"  # Begins the name of a stored key, in place of a variable's: a judge's is followed by its name.
PURPOSE = "stored keys"
SHORT = 16  # The ending of a key with fewer characters is not shown.


def can_store() -> bool:
    """Return whether this instance stores keys."""
    return bool(settings.STORED_KEYS_SECRETS)


def address_of(provider: str, base_url: str) -> str:
    """Return the text to which the key of a model is bound; an empty `base_url` is the provider's own."""
    return f"{provider} {base_url}".strip()


def encrypt_key(key: str, name: str, address: str) -> str:
    """Encrypt a key together with its name and its address."""
    record = {"name": name, "address": address, "key": key}
    return build_cipher(settings.STORED_KEYS_SECRETS, PURPOSE).encrypt(json.dumps(record).encode()).decode()


def decrypt_key(ciphertext: str, name: str, address: str) -> str:
    """Decrypt the key that was stored under this name for this address. Raises BadInput."""
    values = {"name": name.removeprefix(STORED)}
    if not ciphertext:
        raise BadInput(_("The stored key of %(name)s is missing: enter it again") % values)
    if not can_store():
        raise BadInput(
            _("The stored key of %(name)s cannot be read: set QUORUM_STORED_KEYS_SECRET where calls are made") % values
        )
    try:
        record = json.loads(build_cipher(settings.STORED_KEYS_SECRETS, PURPOSE).decrypt(ciphertext.encode()))
    except Undecipherable:
        message = _(
            "The stored key of %(name)s cannot be read: QUORUM_STORED_KEYS_SECRET differs from that when it was stored"
        )
        raise BadInput(message % values) from None
    # A row whose content was exchanged, or a judge whose address was changed, gets no key.
    if (record["name"], record["address"]) != (name, address):
        raise BadInput(_("The stored key of %(name)s was entered for something else: enter it again") % values)
    return str(record["key"])


def reencrypt(ciphertext: str) -> str:
    """Return the ciphertext of the same key with the first secret. Raises Undecipherable."""
    return build_cipher(settings.STORED_KEYS_SECRETS, PURPOSE).rotate(ciphertext.encode()).decode()
