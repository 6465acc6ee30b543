"""Judges as records with their current prices, read from the rows of JudgeVersion."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from django.db import connection

from judges.costs import price_rows
from judges.costs.prices import Price, price_for_judge
from judges.models import JudgeVersion
from judges.models.keys import StoredKey
from judges.records import Judge, JudgeSettings
from judges.stored_keys import STORED

FIELDS = ["id", *(setting.name for setting in fields(JudgeSettings))]


def judge_of(version: JudgeVersion) -> Judge:
    """Return the record of a judge version that providers take, with the current prices."""
    return records_of([version])[0]


def records_of(versions: Iterable[JudgeVersion]) -> list[Judge]:
    versions = list(versions)
    # A key is stored, or the name of a variable; of names nothing is read.
    key_names = [row.api_key_env for row in versions if row.api_key_env.startswith(STORED)]
    stored_keys = StoredKey.objects.filter(name__in=key_names).values_list("name", "ciphertext")
    ciphertexts = dict(stored_keys) if key_names else {}
    judges = [
        (
            Judge(**{name: getattr(row, name) for name in FIELDS}, encrypted_key=ciphertexts.get(row.api_key_env, "")),
            row.created_at,
        )
        for row in versions
    ]
    # Offline judges and unsaved rows have no price rows, so nothing is read for them.
    has_prices = any(row.provider != "offline" and row.pk is not None for row in versions)
    prices = price_rows.newest_rows() if has_prices else []
    return [price_rows.apply_price(judge, created_at, prices) for judge, created_at in judges]


def judges_of(ids: Iterable[int]) -> list[Judge]:
    """Return records of JudgeVersions, in the order of the ids (an id may come twice)."""
    ids = list(ids)
    by_id = {judge.id: judge for judge in records_of(JudgeVersion.objects.filter(pk__in=ids))}
    return [by_id[pk] for pk in ids]


@dataclass(frozen=True, slots=True)
class CurrentPrices:
    """Current prices of judges, and of other models that may answer for them."""

    prices: dict[int, Price | None]
    tables: dict[tuple[str, str], dict[str, Price]]


def read_prices(judge_ids: Iterable[int], *, batch: bool = False) -> CurrentPrices:
    """Read the current prices of these judges, in a separate thread, whose connection is closed."""
    try:
        judges = judges_of(set(judge_ids))
        prices = {judge.id: price_for_judge(judge, batch=batch) for judge in judges}
        return CurrentPrices(prices, price_tables(judges))
    finally:
        connection.close()


def price_tables(judges: Iterable[Judge]) -> dict[tuple[str, str], dict[str, Price]]:
    """Return the team's prices of all models, by provider and address of these judges, then by name."""
    paid = [judge for judge in judges if judge.provider != "offline"]
    rows = price_rows.newest_rows() if paid else []
    return {(judge.provider, judge.base_url): price_rows.prices_of_others(judge, rows) for judge in paid}
