"""The form of a collection's money: what an hour costs, and the caps of its judges."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from corpus.collections.configure import KEYS
from corpus.models import Collection

NAMES = ("hourly_rate", "budget", "daily_budget")


def _bounds(name: str) -> dict[str, Any]:
    """As the command has them."""
    return {"required": False, "min_value": KEYS[name].low, "max_value": KEYS[name].high}


class MoneyForm(forms.Form):
    """An empty field takes the value away."""

    hourly_rate = forms.FloatField(
        **_bounds("hourly_rate"),
        label=gettext_lazy("An hour of an annotator (USD)"),
        help_text=gettext_lazy("Empty: unknown, and said so."),
    )
    budget = forms.FloatField(
        **_bounds("budget"),
        label=gettext_lazy("Budget of the collection (USD)"),
        help_text=gettext_lazy("What judges may cost in all campaigns together. Empty: no cap."),
    )
    daily_budget = forms.FloatField(
        **_bounds("daily_budget"),
        label=gettext_lazy("Budget for a day (USD)"),
        help_text=gettext_lazy("What judges may cost in one day; days begin at midnight UTC. Empty: no cap."),
    )

    @classmethod
    def of(cls, collection: Collection) -> "MoneyForm":
        """Filled with what holds."""
        return cls(initial={name: getattr(collection, name) for name in NAMES})
