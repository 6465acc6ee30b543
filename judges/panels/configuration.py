"""Loading of a judges file: all of it or nothing. A changed judge is a new version; old evidence keeps its own."""

from dataclasses import asdict
from typing import Any

from django.db import connection, transaction

from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from judges.costs.price_rows import enter_price
from judges.models import JudgeVersion, Panel
from judges.panels.judges_file import JudgesFile
from judges.panels.panel_table import PanelSettings
from judges.providers import require_extra
from judges.records import JudgeSettings

LOCK = 0x6A75_6467  # Of the advisory lock under which one file at a time is taken over.


@transaction.atomic
def store_judges_file(file: JudgesFile) -> dict[str, Any]:
    """Store the file's judges and panel, and make the panel the default. The same file again changes nothing.

    Returns {"judges": [{"name", "version", "change": new | changed | unchanged}], "panel": {"name",
    "change"}}. Judges and prices that the file does not name stay as they are; "prices" is there
    where the file has some. Raises BadInput for a provider whose packages are missing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    for entry in file.judges:
        require_extra(entry.provider)
    judges = [_store_judge(entry) for entry in file.judges]
    prices = []
    for one in file.prices:
        change = enter_price(
            provider=one.provider, model=one.model, base_url=one.base_url, prices=one.prices, source="file"
        )
        prices.append({"provider": one.provider, "model": one.model, "change": change})
    panel = {"name": file.panel.name, "change": _store_panel(file.panel)}
    return {"judges": judges, "panel": panel, **({"prices": prices} if prices else {})}


def _store_judge(entry: JudgeSettings) -> dict[str, Any]:
    fields = asdict(entry)
    newest = JudgeVersion.objects.filter(name=entry.name).order_by("-version").first()
    if newest and newest.is_current and all(getattr(newest, name) == value for name, value in fields.items()):
        return {"name": entry.name, "version": newest.version, "change": "unchanged"}
    JudgeVersion.objects.filter(name=entry.name, is_current=True).update(is_current=False)
    version = newest.version + 1 if newest else 1
    JudgeVersion.objects.create(version=version, **fields)
    return {"name": entry.name, "version": version, "change": "changed" if newest else "new"}


def _store_panel(entry: PanelSettings) -> str:
    fields = {**entry.model_dump(), "is_default": True}
    old = Panel.objects.filter(name=entry.name).first()
    if old and all(getattr(old, name) == value for name, value in fields.items()):
        return "unchanged"
    Panel.objects.filter(is_default=True).update(is_default=False)
    Panel.objects.update_or_create(name=entry.name, defaults=fields)
    return "changed" if old else "new"


def has_key(variable: str) -> bool:
    """Return whether the environment variable, or the secret's file, holds a key here."""
    try:
        return bool(read_secret(variable))
    except BadInput:  # a secret file that cannot be read
        return False
