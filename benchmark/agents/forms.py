"""Forms of the pages of agents: who searches with what, who grades, who writes reference answers."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from benchmark.agents import grading, jobs, references
from benchmark.agents.grades import EVEN, UP
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.agents.retrievers import SEARCHING
from benchmark.models import Run
from benchmark.runs.model_folders import offered_folders
from benchmark.systems.chosen import ready_runs
from judges.model_jobs.forms import ModelJobForm

PROTOCOLS = [
    (FIXED, gettext_lazy("fixed: an answer after each of three rounds")),
    (ADAPTIVE, gettext_lazy("adaptive: the agent decides when it has found enough")),
]
HALVES = [
    (UP, gettext_lazy("up: 4.5 is 5")),
    (EVEN, gettext_lazy("to the even number, as Python rounds: 4.5 is 4")),
]


class AgentsForm(ModelJobForm):
    """The form that starts a search by agents: retrievers, agents and limits."""

    roles = {"agents": "search"}

    retrievers = forms.MultipleChoiceField(
        label=gettext_lazy("Retrievers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("BM25, and runs whose system can search for any text: BM25 and dense."),
    )
    agents = forms.MultipleChoiceField(
        label=gettext_lazy("Agents"),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("A mean over agents needs at least two."),
    )
    protocol = forms.ChoiceField(choices=PROTOCOLS, label=gettext_lazy("Rounds"))
    tokenizer = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Tokenizer"),
        help_text=gettext_lazy(
            "Documents are cut at 2,048 tokens. A folder among the base models of this site (QUORUM_BASE_MODELS)."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runs = [run.name for run in ready_runs(self.collection) if run.kind in SEARCHING]
        names = list(dict.fromkeys([str(Run.Kind.BM25), *runs]))
        self.offer("retrievers", names)
        self.fields["retrievers"].initial = names
        folders = offered_folders(lambda folder: (folder / "tokenizer.json").is_file())
        self.offer("tokenizer", [("", gettext("word pieces of 5 letters")), *folders])

    def options(self) -> dict[str, Any]:
        """Return the options, the tokenizer as its folder."""
        folder = self.cleaned_data["tokenizer"]
        return {**self.cleaned_data, "tokenizer": str(settings.BASE_MODELS / folder) if folder else None}


class GradeForm(ModelJobForm):
    """The form that starts grading: whose newest answers, and the judge."""

    roles = {"judge": grading.ROLE}

    protocol = forms.ChoiceField(choices=PROTOCOLS, label=gettext_lazy("Answers of"))
    judge = forms.ChoiceField(
        label=pgettext_lazy("answers", "Judge"),
        help_text=gettext_lazy("Grades each answer without knowing which agent and retriever it is from."),
    )
    halves = forms.ChoiceField(
        choices=HALVES, required=False, initial=UP, label=gettext_lazy("Halves of the completeness")
    )

    def options(self) -> dict[str, Any]:
        """Return the options, with the newest search by the protocol. Raises BadInput."""
        search = jobs.require_search(self.collection, self.cleaned_data["protocol"])
        return {**self.cleaned_data, "search": search, "halves": self.cleaned_data["halves"] or UP}


class ReferencesForm(ModelJobForm):
    """The form that starts writing reference answers: the writer and limits."""

    roles = {"judge": references.ROLE}

    judge = forms.ChoiceField(
        label=gettext_lazy("Writer"),
        help_text=gettext_lazy("Writes one answer per query, from the passages of its aspects alone."),
    )


FORMS: dict[str, type[ModelJobForm]] = {"search": AgentsForm, "grade": GradeForm, "reference": ReferencesForm}
