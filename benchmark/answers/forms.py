"""The form of an evaluation of answers."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from benchmark.answers import contexts, evaluations
from benchmark.systems.chosen import K, ready_runs
from judges.model_jobs.forms import ModelJobForm

CONTEXTS = [
    (contexts.DOCUMENT, gettext_lazy("the documents")),
    (contexts.EVIDENCE, gettext_lazy("the evidence written about the documents")),
]


class AnswersForm(ModelJobForm):
    """The form that starts an evaluation of answers: runs, generators, judge and limits."""

    roles = {"generators": "answer", "judge": "correct"}

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runs = [run.name for run in ready_runs(self.collection)]
        self.offer("systems", runs)
        self.fields["systems"].initial = runs

    @property
    def lacks(self) -> str:
        """Say that there is no run to choose."""
        return "" if self.fields["systems"].choices else _("No finished runs. Add a run first.")  # type: ignore[attr-defined]
