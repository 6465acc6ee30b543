"""Storing of a judges file, all or nothing. A changed judge gets a new version; old evidence keeps the old one."""

from dataclasses import asdict
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from corpus.models import Collection
from judges.costs.price_rows import enter_price
from judges.models import JudgeVersion, Panel
from judges.models.keys import StoredKey
from judges.panels.judges_file import JudgesFile
from judges.providers import require_extra
from judges.stored_keys import SHORT, STORED, address_of, encrypt_key

LOCK = 0x6A75_6467  # Key of the advisory lock under which one file at a time is stored.


@transaction.atomic
def store_judges_file(file: JudgesFile) -> dict[str, Any]:
    """Store the file's judges and panel, and make the panel the default. Storing a file twice changes nothing.

    Returns {"judges": [{"name", "version", "change": new | changed | unchanged}], "panel": {"name", "change"}}, and
    "prices" if the file has some. A file without a panel leaves the default panel as it is, and "panel" is None.
    Judges and prices that the file does not name stay as they are. Raises BadInput for a provider whose packages are
    missing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    for entry in file.judges:
        require_extra(entry.provider)
    judges = []
    for judge in file.judges:
        fields = asdict(judge)
        latest = JudgeVersion.objects.filter(name=judge.name).order_by("-version").first()
        if latest and latest.is_current and all(getattr(latest, name) == value for name, value in fields.items()):
            judges.append({"name": judge.name, "version": latest.version, "change": "unchanged"})
            continue
        # A stored key is for one address: with another one it would be sent to whom it was not entered for.
        keys = StoredKey.objects.filter(name=STORED + judge.name)
        if judge.api_key_env != STORED + judge.name:
            keys.delete()
        elif not keys.filter(address=address_of(judge.provider, judge.base_url)).exists():
            words = _("Judge %(judge)s: no key is stored for it at this address: enter it on the page of models")
            raise BadInput(words % {"judge": judge.name})
        JudgeVersion.objects.filter(name=judge.name, is_current=True).update(is_current=False)
        version = latest.version + 1 if latest else 1
        JudgeVersion.objects.create(version=version, **fields)
        judges.append({"name": judge.name, "version": version, "change": "changed" if latest else "new"})
    prices = []
    for price_entry in file.prices:
        change = enter_price(
            provider=price_entry.provider,
            model=price_entry.model,
            base_url=price_entry.base_url,
            prices=price_entry.prices,
            source="file",
        )
        prices.append({"provider": price_entry.provider, "model": price_entry.model, "change": change})
    panel = None
    if file.panel:
        # The panel of the file becomes the default of new campaigns.
        panel_fields = {**file.panel.model_dump(), "is_default": True}
        stored = Panel.objects.filter(name=file.panel.name).first()
        is_same = stored and all(getattr(stored, name) == value for name, value in panel_fields.items())
        if not is_same:
            Panel.objects.filter(is_default=True).update(is_default=False)
            Panel.objects.update_or_create(name=file.panel.name, defaults=panel_fields)
        panel = {"name": file.panel.name, "change": "unchanged" if is_same else "changed" if stored else "new"}
    return {"judges": judges, "panel": panel, **({"prices": prices} if prices else {})}


def store_key(key: str, name: str, address: str, *, by: str, collection: Collection | None = None) -> None:
    """Encrypt and store a key; one of the same name is replaced."""
    fields = {
        "address": address,
        "ciphertext": encrypt_key(key, name, address),
        "ending": key[-4:] if len(key) >= SHORT else "",
        "collection": collection,
        "stored_at": Now(),
        "made_by": by,
    }
    StoredKey.objects.update_or_create(name=name, defaults=fields)


def has_key(variable: str) -> bool:
    """Return whether the environment variable, the secret's file or the database contains the key."""
    if variable.startswith(STORED):
        return StoredKey.objects.filter(name=variable).exists()
    try:
        return bool(read_secret(variable))
    except BadInput:  # A secret file that cannot be read.
        return False
