"""The form of an evaluation of answers."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from benchmark.answers import contexts, evaluations
from benchmark.systems.chosen import K, ready_runs
from corpus.models import Collection
from judges.campaigns.job_controls import LimitsForm
from judges.retrieval.model_requests import judges_for

CONTEXTS = [
    (contexts.DOCUMENT, gettext_lazy("the documents")),
    (contexts.EVIDENCE, gettext_lazy("the evidence written about the documents")),
]


class AnswersForm(LimitsForm):
    """The form that starts an evaluation of answers: runs, generators, judge and limits."""

    systems = forms.MultipleChoiceField(label=gettext_lazy("Runs"), widget=forms.CheckboxSelectMultiple)
    generators = forms.MultipleChoiceField(label=gettext_lazy("Generators"), widget=forms.CheckboxSelectMultiple)
    judge = forms.ChoiceField(
        label=pgettext_lazy("answers", "Judge"),
        help_text=gettext_lazy("Compares each answer with the reference answers of the query."),
    )
    k = forms.IntegerField(
        min_value=1,
        max_value=evaluations.DEEPEST,
        initial=K,
        label=gettext_lazy("Depth k"),
        help_text=gettext_lazy("Documents of each run that the generator sees. Hit@k and nDCG@k use the same k."),
    )
    contexts = forms.ChoiceField(choices=CONTEXTS, label=gettext_lazy("Contexts"))

    field_order = ("systems", "generators", "judge", "k", "contexts", "budget", "max_calls")

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.collection = collection
        runs = [(run.name, run.name) for run in ready_runs(collection)]
        writers = [(name, name) for name in judges_for("answer")]
        self.fields["systems"].choices = runs  # type: ignore[attr-defined]
        self.fields["systems"].initial = [name for name, _title in runs]
        self.fields["generators"].choices = writers  # type: ignore[attr-defined]
        self.fields["judge"].choices = [(name, name) for name in judges_for("correct")]  # type: ignore[attr-defined]
        self.fields["budget"].help_text = gettext_lazy("Answering stops at this limit. You can resume it later.")

    @property
    def has_runs(self) -> bool:
        """Return whether there is a run to choose."""
        return bool(self.fields["systems"].choices)  # type: ignore[attr-defined]

    def options(self) -> dict[str, Any]:
        """The checked options of the evaluation. Raises BadInput."""
        given = dict(self.cleaned_data)
        return evaluations.check_options(self.collection, kind=given.pop("contexts"), **given)
