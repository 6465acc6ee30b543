"""What the page of prices shows: for each judge the price that holds, and where it is from."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judges.costs.accounting import format_price
from judges.costs.price_entries import PRICES
from judges.costs.prices import Price, describe_price_source, is_batched, price_for_judge
from judges.engine.plan import records_of
from judges.models import JudgeVersion
from judges.models.prices import PriceRow
from judges.records import Judge

# As people know the prices.
NAMES = {
    "input_price": gettext_lazy("Input"),
    "output_price": gettext_lazy("Output"),
    "cached_input_price": gettext_lazy("Input read from a prompt cache"),
    "written_input_price": gettext_lazy("Input written to a prompt cache"),
    "reasoning_price": gettext_lazy("Reasoning"),
    "batch_input_price": gettext_lazy("Input in a batch"),
    "batch_output_price": gettext_lazy("Output in a batch"),
    "batch_cached_input_price": gettext_lazy("Input in a batch, read from a prompt cache"),
}


@dataclass(frozen=True, slots=True)
class JudgePrice:
    """A judge with the price that holds for it."""

    judge: Judge
    known: Price | None
    batch: Price | None  # None where its provider has no batch endpoint that is used.
    source: str

    @property
    def parts(self) -> list[tuple[str, float]]:
        """(what, USD per million tokens) of what costs otherwise than input and output."""
        if self.known is None:
            return []
        usual, batch = self.known, self.batch
        told: dict[str, float | None] = {
            "cached_input_price": usual.cached if usual.cached != usual.input else None,
            "written_input_price": usual.written,
            "reasoning_price": usual.reasoning,
            "batch_input_price": batch.input if batch else None,
            "batch_output_price": batch.output if batch else None,
            "batch_cached_input_price": batch.cached if batch and batch.cached != batch.input else None,
        }
        return [(str(NAMES[key]), value) for key, value in told.items() if value is not None]


def judge_prices() -> list[JudgePrice]:
    """Every judge in its present version, by name."""
    return [judge_price(one) for one in records_of(JudgeVersion.objects.filter(is_current=True).order_by("name"))]


def judge_price(judge: Judge) -> JudgePrice:
    """The price that holds for the judge."""
    batch = price_for_judge(judge, batch=True) if is_batched(judge) else None
    return JudgePrice(judge, price_for_judge(judge), batch, describe_price_source(judge))


def price_changes(judge: Judge, wanted: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """(what, now, then) of what a new row would change; "" for what is not said."""
    now = {key: getattr(judge, key) for key in PRICES}
    return [
        (str(NAMES[key]), format_price(now[key]), format_price(wanted.get(key)))
        for key in PRICES
        if now[key] != wanted.get(key)
    ]


def describe_price_rows(rows: list[PriceRow]) -> list[tuple[PriceRow, str]]:
    """Each row with its prices in one line."""
    return [(row, describe_prices({key: getattr(row, key) for key in PRICES})) for row in rows]


def describe_prices(prices: Mapping[str, float | None]) -> str:
    """In one line."""
    if prices.get("input_price") is None:
        return _("taken away")
    return ", ".join(f"{NAMES[key]} {format_price(prices[key])}" for key in PRICES if prices.get(key) is not None)
