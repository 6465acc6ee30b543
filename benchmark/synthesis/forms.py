"""The form of a synthesis."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from benchmark.forms import STOPS, LimitsForm
from benchmark.synthesis.lifecycle import MOST_DEV
from benchmark.synthesis.seeds import QUERIES
from judges.retrieval.model_requests import judges_for


class SynthesisForm(LimitsForm):
    """Who writes, from how many of the collection's queries, and how much is kept apart to measure."""

    judge = forms.ChoiceField(
        label=gettext_lazy("Model"),
        help_text=gettext_lazy("Answers every step: persona, type, answer, aspects, plans."),
    )
    writer = forms.ChoiceField(required=False, label=gettext_lazy("Model that writes the passages"))
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        initial=20,
        label=gettext_lazy("Seed queries"),
        help_text=gettext_lazy("Drawn at random. Leave blank for all queries."),
    )
    dev = forms.FloatField(
        min_value=0,
        max_value=MOST_DEV,
        required=False,
        label=gettext_lazy("Share of bundles for a dev split"),
        help_text=gettext_lazy(
            "Leave blank to keep synthetic queries out of dev. A dev split of synthetic queries measures a model on "
            "texts that a model wrote."
        ),
    )
    seed = forms.IntegerField(required=False, initial=0, label=gettext_lazy("Random seed"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["judge", "writer", "limit", "dev", "seed"])
        self.fields["budget"].help_text = STOPS
        names = [(name, name) for name in judges_for("persona")]
        self.fields["judge"].choices = names  # type: ignore[attr-defined]
        self.fields["writer"].choices = [("", gettext_lazy("the same model")), *names]  # type: ignore[attr-defined]

    def options(self) -> dict[str, Any]:
        """Return the options as the service takes them."""
        return {"source": QUERIES, **{name: value for name, value in self.cleaned_data.items() if value is not None}}
