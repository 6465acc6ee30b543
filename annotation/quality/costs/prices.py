"""Prices on pages: each judge's current price and its source, the form of a new price, and its changes."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judges.costs.accounting import format_price
from judges.costs.price_entries import HIGHEST, PRICES, incomplete_price
from judges.costs.prices import PAID_BY_CALL, describe_price_source, is_batched, price_for_judge
from judges.records import Judge

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
    """Form of a judge's price. An empty field sets no price of this kind of tokens."""

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
        # The note is declared on the class, so it would come before the prices.
        self.fields = {**fields, **self.fields}

    @classmethod
    def of(cls, judge: Judge) -> "PriceForm":
        """Return the form with the judge's current price."""
        return cls(initial={key: getattr(judge, key) for key in PRICES})

    @property
    def prices(self) -> dict[str, float]:
        """The entered prices by field, without empty fields."""
        return {key: self.cleaned_data[key] for key in PRICES if self.cleaned_data.get(key) is not None}

    def clean(self) -> dict[str, Any]:
        if not self.errors and (problem := incomplete_price(self.prices)):
            self.add_error(problem[0], _("Enter both batch prices or neither."))
        return self.cleaned_data


def judge_price(judge: Judge) -> dict[str, Any]:
    """Return the judge with its current price. `parts`: names and values of prices other than input and output."""
    price = price_for_judge(judge)
    # None where batches are not used.
    batch = price_for_judge(judge, batch=True) if is_batched(judge) else None
    other_prices: dict[str, float | None] = {}
    is_paid_by_call = judge.provider in PAID_BY_CALL
    if price is not None and not is_paid_by_call:
        other_prices = {
            "cached_input_price": price.cached if price.cached != price.input else None,
            "written_input_price": price.written,
            "reasoning_price": price.reasoning,
            "batch_input_price": batch.input if batch else None,
            "batch_output_price": batch.output if batch else None,
            "batch_cached_input_price": batch.cached if batch and batch.cached != batch.input else None,
        }
    # USD per million tokens.
    parts = [(str(NAMES[key]), value) for key, value in other_prices.items() if value is not None]
    if price is not None and is_paid_by_call:
        parts.append((_("Each call"), price.call))
    return {
        "judge": judge,
        "known": price,
        "batch": batch,
        "parts": parts,
        "source": describe_price_source(judge),
        "by_call": is_paid_by_call,
    }


def price_changes(judge: Judge, new_prices: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """Return the changes that new prices make: name, current price and new price; empty for no price."""
    current = {key: getattr(judge, key) for key in PRICES}
    return [
        (str(NAMES[key]), format_price(current[key]), format_price(new_prices.get(key)))
        for key in PRICES
        if current[key] != new_prices.get(key)
    ]


def describe_prices(prices: Mapping[str, float | None]) -> str:
    """Return a row of the history of prices in words."""
    if prices.get("input_price") is None:
        return _("removed")
    return ", ".join(f"{NAMES[key]} {format_price(prices[key])}" for key in PRICES if prices.get(key) is not None)
