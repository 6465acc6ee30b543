"""The price table: the row that applies to a judge, and new rows. Every change is a new row; none is ever altered.

The most exact row of a model applies: its name before a prefix, an address before none; of equal rows
the newest. A judge's own prices in the judges file come before the file's price tables, and before
older rows of the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from judges.costs.price_entries import PRICES, incomplete_price
from judges.costs.prices import Price, price_for_judge
from judges.models.prices import PriceRow
from judges.records import Judge
from store.sql import fetch_row

LOCK = 0x7072_6963  # The advisory lock under which one row at a time is compared with the newest and added.


def newest_rows() -> list[PriceRow]:
    """Return the newest row of each model and address. One statement."""
    newest = PriceRow.objects.order_by("provider", "base_url", "model", "-pk")
    return list(newest.distinct("provider", "base_url", "model"))


def apply_price(judge: Judge, made_at: datetime, rows: Sequence[PriceRow]) -> Judge:
    """Return the judge with the prices that apply: its own, which are as old as its version, or a row's."""
    # A row without an input price removes a price, and does not apply.
    matching_rows = [row for row in rows if row.input_price is not None and _row_matches(row, judge)]
    row = max(
        [] if judge.provider == "offline" else matching_rows,
        key=lambda row: (not row.model.endswith("*"), len(row.model), bool(row.base_url), row.pk),
        default=None,
    )
    has_price = judge.input_price is not None
    if row is None or (has_price and not (row.source == PriceRow.Source.PAGE and row.created_at > made_at)):
        return replace(judge, priced_by="file") if has_price else judge
    prices = {key: getattr(row, key) for key in PRICES}
    return replace(judge, **prices, priced_by="page" if row.source == PriceRow.Source.PAGE else "table")


def prices_of_others(judge: Judge, rows: Sequence[PriceRow]) -> dict[str, Price]:
    """Return the team's prices of all models at the judge's provider and address, by the model's name."""
    matching_rows = [row for row in rows if row.provider == judge.provider and row.base_url in ("", judge.base_url)]
    prices = {}
    for row in sorted(matching_rows, key=lambda row: bool(row.base_url)):  # a row with an address replaces one without
        if row.input_price is not None:
            other_judge = replace(judge, model=row.model, **{key: getattr(row, key) for key in PRICES})
            prices[row.model] = price_for_judge(other_judge)
    return {model: price for model, price in prices.items() if price is not None}


def history_of(judge: Judge) -> list[PriceRow]:
    """Return all price rows of the judge's model, newest first."""
    return [row for row in PriceRow.objects.filter(provider=judge.provider).order_by("-pk") if _row_matches(row, judge)]


@transaction.atomic
def enter_price(
    *, provider: str, model: str, prices: Mapping[str, float], source: str, base_url: str = "", note: str = ""
) -> str:
    """Add a price row; return "new", "changed", or "unchanged" if the newest row of this source has the same prices.

    Without prices the row removes the model's price; if the page removes its own, the judges file's earlier
    price applies again. Raises BadInput for incomplete prices, and if there is no price to remove.
    """
    if problem := incomplete_price(prices):
        raise BadInput(f"{problem[0]} {problem[1]}")
    fetch_row("SELECT pg_advisory_xact_lock(%(lock)s)", lock=LOCK)
    same = PriceRow.objects.filter(provider=provider, base_url=base_url, model=model).order_by("-pk")
    newest = same.first() if source == PriceRow.Source.PAGE else same.filter(source=source).first()
    values = {key: prices.get(key) for key in PRICES}
    if not prices:
        if newest is None:
            raise BadInput(_("%(model)s has no entered price to remove") % {"model": model})
        if earlier := taken_over(provider=provider, base_url=base_url, model=model):
            source, note, values = earlier.source, earlier.note, {key: getattr(earlier, key) for key in PRICES}
    if newest is not None and all(getattr(newest, key) == value for key, value in values.items()):
        return "unchanged"
    PriceRow.objects.create(provider=provider, base_url=base_url, model=model, source=source, note=note, **values)
    return "changed" if newest is not None else "new"


def taken_over(*, provider: str, base_url: str, model: str) -> PriceRow | None:
    """Return the judges file's row that applies again if the page removes its own price; None if there is none."""
    same = PriceRow.objects.filter(provider=provider, base_url=base_url, model=model).order_by("-pk")
    newest = same.first()
    if newest is None or newest.source != PriceRow.Source.PAGE or newest.input_price is None:
        return None
    earlier = same.exclude(source=PriceRow.Source.PAGE).first()
    return earlier if earlier is not None and earlier.input_price is not None else None


def _row_matches(row: PriceRow, judge: Judge) -> bool:
    if row.provider != judge.provider or row.base_url not in ("", judge.base_url):
        return False
    return judge.model.startswith(row.model[:-1]) if row.model.endswith("*") else row.model == judge.model
