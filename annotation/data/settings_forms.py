"""Forms of a collection's money (what an hour costs, and the caps of its judges) and of its arms."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.collections.arm_allocation import ARMS, HIGHEST, weights_of
from corpus.collections.configure import HIGHEST_BUDGET, HIGHEST_RATE
from corpus.models import Collection

NAMES = ("hourly_rate", "budget", "daily_budget")


RATE: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_RATE}
# As the command has them.
BUDGET: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_BUDGET}


class CostSettingsForm(forms.Form):
    """An empty field takes the value away."""

    hourly_rate = forms.FloatField(
        **RATE,
        label=_("An hour of an annotator (USD)"),
        help_text=_("Empty: unknown, and said so."),
    )
    budget = forms.FloatField(
        **BUDGET,
        label=_("Budget of the collection (USD)"),
        help_text=_("What judges may cost in all campaigns together. Empty: no cap."),
    )
    daily_budget = forms.FloatField(
        **BUDGET,
        label=_("Budget for a day (USD)"),
        help_text=_("What judges may cost in one day; days begin at midnight UTC. Empty: no cap."),
    )

    @classmethod
    def of(cls, collection: Collection) -> "CostSettingsForm":
        """Filled with what holds."""
        return cls(initial={name: getattr(collection, name) for name in NAMES})


def _weight_field(label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(min_value=0, max_value=HIGHEST, label=label, help_text=help_text)


class ArmWeightsForm(forms.Form):
    """How often each arm comes."""

    shown = _weight_field(_("Debate shown"), _("The debate stands beside the text from the start."))
    hidden = _weight_field(_("Debate hidden"), _("Query and document alone."))
    reveal = _weight_field(
        _("First vote, then the debate"), _("A vote on query and document alone, then the debate, then the final vote.")
    )

    NAMES: ClassVar = {"shown": shown.label, "hidden": hidden.label, "reveal": reveal.label}

    @classmethod
    def of(cls, collection: Collection) -> "ArmWeightsForm":
        """Filled with what holds."""
        return cls(initial={arm: collection.arms.get(arm, 0) for arm in ARMS})

    def clean(self) -> dict[str, Any]:
        """At least one arm has a weight."""
        found = {arm: self.cleaned_data.get(arm) for arm in ARMS}
        if None not in found.values():
            try:
                weights_of(found)
            except ValueError:
                raise forms.ValidationError(_("Give at least one arm a weight above 0.")) from None
        return self.cleaned_data

    @property
    def weights(self) -> dict[str, int]:
        """As the collection keeps them."""
        return {arm: self.cleaned_data[arm] for arm in ARMS}
