"""Forms of the pages of agents: who searches with what, who grades, who writes reference answers."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from benchmark.agents import grading, jobs, references, sampling, searching
from benchmark.agents.grades import EVEN, UP
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.agents.retrievers import SEARCHING
from benchmark.models import AgentJob, Run
from benchmark.runs.model_folders import offered_folders
from benchmark.systems.chosen import ready_runs
from corpus.models import Collection
from judges.campaigns.estimates import Estimate
from judges.campaigns.job_controls import LimitsForm
from judges.retrieval.job_campaigns import limits_of
from judges.retrieval.model_requests import judges_for

PROTOCOLS = [
    (FIXED, gettext_lazy("fixed: an answer after each of three rounds")),
    (ADAPTIVE, gettext_lazy("adaptive: the agent decides when it has found enough")),
]
HALVES = [
    (UP, gettext_lazy("up: 4.5 is 5")),
    (EVEN, gettext_lazy("to the even number, as Python rounds: 4.5 is 4")),
]


class AgentJobForm(LimitsForm):
    """The base of the forms: the collection, and the limits of the job that is started."""

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.collection = collection
        self.fields["budget"].help_text = gettext_lazy("The work stops at this limit. You can resume it later.")

    @property
    def limits(self) -> dict[str, Any]:
        """Return the limits on cost and calls."""
        return limits_of(self.cleaned_data)

    def estimate(self) -> Estimate:
        """Estimate the cost of the job. Raises BadInput."""
        raise NotImplementedError

    def start(self, by: str) -> AgentJob:
        """Start the job, or resume the equal one. Raises BadInput."""
        raise NotImplementedError


class AgentsForm(AgentJobForm):
    """The form that starts a search by agents: retrievers, agents and limits."""

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
    field_order = ("retrievers", "agents", "protocol", "tokenizer", "budget", "max_calls")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runs = [run.name for run in ready_runs(self.collection) if run.kind in SEARCHING]
        names = list(dict.fromkeys([str(Run.Kind.BM25), *runs]))
        writers = judges_for("search")
        for field, offered in (("retrievers", names), ("agents", writers)):
            self.fields[field].choices = [(name, name) for name in offered]  # type: ignore[attr-defined]
        self.fields["retrievers"].initial = names
        folders = offered_folders(lambda folder: (folder / "tokenizer.json").is_file())
        tokenizers = [("", gettext("word pieces of 5 letters")), *((name, name) for name in folders)]
        self.fields["tokenizer"].choices = tokenizers  # type: ignore[attr-defined]

    def asked(self) -> dict[str, Any]:
        """Return the choices as the services take them."""
        folder = self.cleaned_data["tokenizer"]
        named = {name: self.cleaned_data[name] for name in ("retrievers", "agents", "protocol")}
        return {**named, "tokenizer": str(settings.BASE_MODELS / folder) if folder else None}

    def estimate(self) -> Estimate:
        """Estimate the cost of the searches. Raises BadInput."""
        queries = sampling.preview_sample(self.collection)[str(self.collection.pk)]
        return searching.estimate_search(self.collection, queries, **self.asked())

    def start(self, by: str) -> AgentJob:
        """Begin the searches over the collection's sample. Raises BadInput."""
        sample = sampling.ensure_sample(self.collection)
        return searching.start_search(self.collection, sample, **self.asked(), limits=self.limits, by=by)


class GradeForm(AgentJobForm):
    """The form that starts grading: whose newest answers, and the judge."""

    protocol = forms.ChoiceField(choices=PROTOCOLS, label=gettext_lazy("Answers of"))
    judge = forms.ChoiceField(
        label=pgettext_lazy("answers", "Judge"),
        help_text=gettext_lazy("Grades each answer without knowing which agent and retriever it is from."),
    )
    halves = forms.ChoiceField(
        choices=HALVES, required=False, initial=UP, label=gettext_lazy("Halves of the completeness")
    )
    field_order = ("protocol", "judge", "halves", "budget", "max_calls")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["judge"].choices = [(name, name) for name in judges_for("assess")]  # type: ignore[attr-defined]

    @property
    def _search(self) -> AgentJob:
        return jobs.require_search(self.collection, self.cleaned_data["protocol"])

    def estimate(self) -> Estimate:
        """Estimate the cost of grading. Raises BadInput."""
        return grading.estimate_grading(self._search, self.cleaned_data["judge"])

    def start(self, by: str) -> AgentJob:
        """Start grading. Raises BadInput."""
        halves = self.cleaned_data["halves"] or UP
        return grading.start_grading(self._search, self.cleaned_data["judge"], halves=halves, limits=self.limits, by=by)


class ReferencesForm(AgentJobForm):
    """The form that starts writing reference answers: the writer and limits."""

    judge = forms.ChoiceField(
        label=gettext_lazy("Writer"),
        help_text=gettext_lazy("Writes one answer per query, from the passages of its aspects alone."),
    )
    field_order = ("judge", "budget", "max_calls")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["judge"].choices = [(name, name) for name in judges_for("reference")]  # type: ignore[attr-defined]

    def estimate(self) -> Estimate:
        """Estimate the cost of writing. Raises BadInput."""
        return references.estimate_references(self.collection, self.cleaned_data["judge"])

    def start(self, by: str) -> AgentJob:
        """Start writing reference answers. Raises BadInput."""
        return references.start_references(self.collection, self.cleaned_data["judge"], limits=self.limits, by=by)


FORMS: dict[str, type[AgentJobForm]] = {"search": AgentsForm, "grade": GradeForm, "reference": ReferencesForm}
