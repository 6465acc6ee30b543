"""The price table: which row holds for a judge, and new rows. Every change is a row; none is ever altered.

The most exact row of a model holds: its name before a prefix, an address before none. Of equal ones
the newest. What a judge's own keys in the judges file say comes before rows of a file, and before
rows of the page that are older.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from judges.costs.price_entries import PRICES, incomplete_price
from judges.costs.prices import Price, price_for_judge
from judges.models import JudgeVersion
from judges.models.prices import PriceRow
from judges.records import Judge
from store.sql import fetch_row

# Of the advisory lock under which one row at a time is compared with the newest and added.
LOCK = 0x7072_6963


def newest_rows() -> list[PriceRow]:
    """Return the newest row of each model and address. One statement."""
    newest = PriceRow.objects.order_by("provider", "base_url", "model", "-pk")
    return list(newest.distinct("provider", "base_url", "model"))


def apply_price(judge: Judge, made_at: datetime, rows: Sequence[PriceRow]) -> Judge:
    """Return the judge with the prices that hold: its own, as of its version, or a row's."""
    # Rows that took a price away count for nothing.
    fits = [row for row in rows if row.input_price is not None and _row_matches(row, judge)]
    row = max(
        [] if judge.provider == "offline" else fits,
        key=lambda row: (not row.model.endswith("*"), len(row.model), bool(row.base_url), row.pk),
        default=None,
    )
    own = judge.input_price is not None
    if row is None or (own and not (row.source == PriceRow.Source.PAGE and row.created_at > made_at)):
        return replace(judge, priced_by="file") if own else judge
    told = {key: getattr(row, key) for key in PRICES}
    return replace(judge, **told, priced_by="page" if row.source == PriceRow.Source.PAGE else "table")


def prices_of_others(judge: Judge, rows: Sequence[PriceRow]) -> dict[str, Price]:
    """Return what the team says that models at the judge's provider and address cost, by name."""
    fitting = [row for row in rows if row.provider == judge.provider and row.base_url in ("", judge.base_url)]
    prices = {}
    for row in sorted(fitting, key=lambda row: bool(row.base_url)):  # that of an address comes before that of none
        if row.input_price is not None:
            named = replace(judge, model=row.model, **{key: getattr(row, key) for key in PRICES})
            prices[row.model] = price_for_judge(named)
    return {model: price for model, price in prices.items() if price is not None}


def newest_number() -> int:
    """Return the number of the newest row; 0 where there is none."""
    return PriceRow.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def history_of(judge: Judge) -> list[PriceRow]:
    """Return all price rows of the judge's model, newest first."""
    return [row for row in PriceRow.objects.filter(provider=judge.provider).order_by("-pk") if _row_matches(row, judge)]


@transaction.atomic
def enter_price(
    *, provider: str, model: str, prices: Mapping[str, float], source: str, base_url: str = "", note: str = ""
) -> str:
    """Add a price row; return new, changed, or unchanged where the newest of this source says the same.

    No prices take the price away; where the page takes its own away, what the judges file said
    before counts again. Raises BadInput for prices that do not hold together.
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
        if again := taken_over(provider=provider, base_url=base_url, model=model):
            source, note, values = again.source, again.note, {key: getattr(again, key) for key in PRICES}
    if newest is not None and all(getattr(newest, key) == value for key, value in values.items()):
        return "unchanged"
    PriceRow.objects.create(provider=provider, base_url=base_url, model=model, source=source, note=note, **values)
    return "changed" if newest is not None else "new"


def taken_over(*, provider: str, base_url: str, model: str) -> PriceRow | None:
    """Return the judges file's row that counts again when the page takes its own price away; None: none does."""
    same = PriceRow.objects.filter(provider=provider, base_url=base_url, model=model).order_by("-pk")
    newest = same.first()
    if newest is None or newest.source != PriceRow.Source.PAGE or newest.input_price is None:
        return None
    before = same.exclude(source=PriceRow.Source.PAGE).first()
    return before if before is not None and before.input_price is not None else None


def judges_sharing(judge: Judge) -> list[str]:
    """The names of other current judges whom a price of this judge's model and address concerns."""
    same = JudgeVersion.objects.filter(is_current=True, provider=judge.provider, model=judge.model)
    same = same.filter(base_url=judge.base_url) if judge.base_url else same
    return list(same.exclude(name=judge.name).order_by("name").values_list("name", flat=True))


def _row_matches(row: PriceRow, judge: Judge) -> bool:
    if row.provider != judge.provider or row.base_url not in ("", judge.base_url):
        return False
    return judge.model.startswith(row.model[:-1]) if row.model.endswith("*") else row.model == judge.model
