"""The form of a model's price."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.costs.prices import NAMES
from judges.costs.price_entries import HIGHEST, PRICES, incomplete_price
from judges.records import Judge

HELP = {
    "input_price": gettext_lazy("USD per million tokens, as all of these. 0 here and for output: it is free."),
    "cached_input_price": gettext_lazy("Empty: as other input."),
    "written_input_price": gettext_lazy("Empty: as other input."),
    "reasoning_price": gettext_lazy("Empty: as other output."),
    "batch_input_price": gettext_lazy("Empty: half the price."),
    "batch_cached_input_price": gettext_lazy("Empty: the same share as other input has in a batch."),
}


class PriceForm(forms.Form):
    """An empty field says nothing of this kind of tokens."""

    note = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Where is this price from?"),
        help_text=gettext_lazy("For whoever reads it later: an address, an invoice, a contract."),
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
        self.fields = {**fields, **self.fields}

    @classmethod
    def of(cls, judge: Judge) -> "PriceForm":
        """Filled with what the team says now."""
        return cls(initial={key: getattr(judge, key) for key in PRICES})

    @property
    def prices(self) -> dict[str, float]:
        """What was given."""
        return {key: self.cleaned_data[key] for key in PRICES if self.cleaned_data.get(key) is not None}

    def clean(self) -> dict[str, Any]:
        """Prices that need each other."""
        if not self.errors and (problem := incomplete_price(self.prices)):
            self.add_error(problem[0], _("Give both prices of a batch, or none of a batch."))
        return self.cleaned_data
