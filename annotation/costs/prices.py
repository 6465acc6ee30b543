"""Prices as pages show them: for each judge the price that holds and its source, and the changes of a new one."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judges.costs.accounting import format_price
from judges.costs.price_entries import PRICES
from judges.costs.prices import PAID_BY_CALL, describe_price_source, is_batched, price_for_judge
from judges.records import Judge

# As people know the prices.
NAMES = {
    "input_price": gettext_lazy("Input"),
    "output_price": gettext_lazy("Output"),
    "cached_input_price": gettext_lazy("Input, cached"),
    "written_input_price": gettext_lazy("Input, written to cache"),
    "reasoning_price": gettext_lazy("Reasoning"),
    "batch_input_price": gettext_lazy("Batch input"),
    "batch_output_price": gettext_lazy("Batch output"),
    "batch_cached_input_price": gettext_lazy("Batch input, cached"),
}


def judge_price(judge: Judge) -> dict[str, Any]:
    """The judge with the price that holds for it, and what costs otherwise than input and output."""
    usual = price_for_judge(judge)
    # None where its provider has no batch endpoint that is used.
    batch = price_for_judge(judge, batch=True) if is_batched(judge) else None
    told: dict[str, float | None] = {}
    by_call = judge.provider in PAID_BY_CALL
    if usual is not None and not by_call:
        told = {
            "cached_input_price": usual.cached if usual.cached != usual.input else None,
            "written_input_price": usual.written,
            "reasoning_price": usual.reasoning,
            "batch_input_price": batch.input if batch else None,
            "batch_output_price": batch.output if batch else None,
            "batch_cached_input_price": batch.cached if batch and batch.cached != batch.input else None,
        }
    # USD per million tokens.
    parts = [(str(NAMES[key]), value) for key, value in told.items() if value is not None]
    if usual is not None and by_call:
        parts.append((_("Each call"), usual.call))
    source = describe_price_source(judge)
    return {"judge": judge, "known": usual, "batch": batch, "parts": parts, "source": source, "by_call": by_call}


def price_changes(judge: Judge, wanted: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """(what, now, then) of what a new row would change; "" for what is not said."""
    now = {key: getattr(judge, key) for key in PRICES}
    return [
        (str(NAMES[key]), format_price(now[key]), format_price(wanted.get(key)))
        for key in PRICES
        if now[key] != wanted.get(key)
    ]


def describe_prices(prices: Mapping[str, float | None]) -> str:
    if prices.get("input_price") is None:
        return _("removed")
    return ", ".join(f"{NAMES[key]} {format_price(prices[key])}" for key in PRICES if prices.get(key) is not None)
