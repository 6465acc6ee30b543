"""`rotate_stored_keys`: encrypt stored keys again, before an old secret is removed."""

from typing import Any

from django.db import transaction

from corpus.collections.ciphers import Undecipherable
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from judges.models.keys import StoredKey
from judges.stored_keys import can_store, reencrypt


class Command(QuorumCommand):
    """The command that encrypts all stored keys with the first secret of QUORUM_STORED_KEYS_SECRET."""

    act = "judges.keys-rotated"
    help = "Encrypt all stored keys again with the first secret of QUORUM_STORED_KEYS_SECRET."

    @transaction.atomic
    def run(self, **options: Any) -> object:
        if not can_store():
            raise BadInput("QUORUM_STORED_KEYS_SECRET is not set: set it to the new secret, a comma and the old one")
        keys = list(StoredKey.objects.select_for_update().order_by("name"))
        for key in keys:
            try:
                key.ciphertext = reencrypt(key.ciphertext)
            except Undecipherable:
                raise BadInput(f"{key.name} was stored with a secret that QUORUM_STORED_KEYS_SECRET lacks") from None
            key.save(update_fields=["ciphertext"])
        self.say(f"{len(keys)} stored keys are encrypted with the first secret: the others can be taken away")
        return {"keys": len(keys)}
