"""Prices as pages show them: for each judge the one that holds and its source, the form of a new one, its changes."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judges.costs.accounting import format_price
from judges.costs.price_entries import HIGHEST, PRICES, incomplete_price
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

HELP = {
    "input_price": gettext_lazy(
        "USD per million tokens, like all prices here. Enter 0 here and for output if the model is free."
    ),
    "cached_input_price": gettext_lazy("Leave blank to use the input price."),
    "written_input_price": gettext_lazy("Leave blank to use the input price."),
    "reasoning_price": gettext_lazy("Leave blank to use the output price."),
    "batch_input_price": gettext_lazy("Leave blank for half price."),
    "batch_cached_input_price": gettext_lazy("Leave blank to apply the batch discount."),
}


class PriceForm(forms.Form):
    """An empty field says nothing of this kind of tokens."""

    note = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Source of this price"),
        help_text=gettext_lazy("For your records: a URL, an invoice, a contract."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, forms.Field] = {
            key: forms.FloatField(
                required=key in ("input_price", "output_price"),
                min_value=0,
                max_value=HIGHEST,
                label=NAMES[key],
                help_text=HELP.get(key, ""),
                widget=forms.NumberInput(attrs={"step": "any"}),
            )
            for key in PRICES
        }
        # The note is declared on the class and would stand before the prices.
        self.fields = {**fields, **self.fields}

    @classmethod
    def of(cls, judge: Judge) -> "PriceForm":
        return cls(initial={key: getattr(judge, key) for key in PRICES})

    @property
    def prices(self) -> dict[str, float]:
        """Return the prices that were entered, by field; empty fields are left out."""
        return {key: self.cleaned_data[key] for key in PRICES if self.cleaned_data.get(key) is not None}

    def clean(self) -> dict[str, Any]:
        if not self.errors and (problem := incomplete_price(self.prices)):
            self.add_error(problem[0], _("Enter both batch prices or neither."))
        return self.cleaned_data


def judge_price(judge: Judge) -> dict[str, Any]:
    """The judge with the price that holds for it, and costs other than input and output."""
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
