"""The form of a collection's money: what an hour costs, and the caps of its judges."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from corpus.collections.configure import HIGHEST_BUDGET, HIGHEST_RATE
from corpus.models import Collection

NAMES = ("hourly_rate", "budget", "daily_budget")


RATE: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_RATE}
BUDGET: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_BUDGET}
"""As the command has them."""


class MoneyForm(forms.Form):
    """An empty field takes the value away."""

    hourly_rate = forms.FloatField(
        **RATE,
        label=gettext_lazy("An hour of an annotator (USD)"),
        help_text=gettext_lazy("Empty: unknown, and said so."),
    )
    budget = forms.FloatField(
        **BUDGET,
        label=gettext_lazy("Budget of the collection (USD)"),
        help_text=gettext_lazy("What judges may cost in all campaigns together. Empty: no cap."),
    )
    daily_budget = forms.FloatField(
        **BUDGET,
        label=gettext_lazy("Budget for a day (USD)"),
        help_text=gettext_lazy("What judges may cost in one day; days begin at midnight UTC. Empty: no cap."),
    )

    @classmethod
    def of(cls, collection: Collection) -> "MoneyForm":
        """Filled with what holds."""
        return cls(initial={name: getattr(collection, name) for name in NAMES})
