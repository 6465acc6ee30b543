"""The form of a model's price."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.costs.prices import NAMES
from judges.costs.price_entries import HIGHEST, PRICES, incomplete_price
from judges.records import Judge

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
