"""Forms of the benchmark's pages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from benchmark.models import RUN_NAME, Qrels, Run
from benchmark.runs.builders import check_name
from benchmark.runs.folder_reranking import is_reranker, prompt_names
from benchmark.runs.importing import name_of
from benchmark.runs.model_folders import LARGEST_BATCH, offered_folders
from benchmark.runs.sparse import is_sparse
from benchmark.systems.chosen import K, ready_runs, version_title
from corpus.models import Collection
from jobs.models import JobState
from judges.model_jobs.forms import ModelJobForm
from judges.model_jobs.options import LIMITS
from judges.retrieval.model_requests import judges_for

ROLES = {Run.Kind.REWRITE: "rewrite", Run.Kind.REASONING: "reason", Run.Kind.DENSE: "embed", Run.Kind.RERANK: "rank"}


class RunFiles(forms.ClearableFileInput):
    """A file input that takes several files at once."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A field for one file or several; its value is a list."""

    widget = RunFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # type: ignore[type-arg]
        """Clean each file by the rules of a single one."""
        given = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(one, initial) for one in given] or super().clean(None, initial)


# As the form of imports says it of candidates.
KEEP_SELF = gettext_lazy("Keep a query that is also a document in its own ranking")


class UploadForm(forms.Form):
    """Runs of systems that work elsewhere."""

    files = FilesField(  # type: ignore[assignment]  # the form's own `files` is set before fields are looked up
        label=gettext_lazy("TREC files"),
        help_text=gettext_lazy(
            "Each file is one run and gives it its name. Lines contain query, Q0, document, "
            "rank, score and tag. Gzip is accepted."
        ),
    )
    name = forms.CharField(
        required=False,
        max_length=100,
        validators=[RUN_NAME],
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("For a single file. Replaces the file name."),
    )
    instruction = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=pgettext_lazy("retrieval", "Instruction"),
        help_text=gettext_lazy("The instruction that the system received, if any."),
    )
    skip_unknown = forms.BooleanField(
        required=False, label=gettext_lazy("Skip queries and documents that are not in the collection")
    )
    keep_self = forms.BooleanField(required=False, label=KEEP_SELF)

    def clean(self) -> dict[str, Any]:
        """Refuse a name for several files: each keeps its own."""
        given: dict[str, Any] = super().clean() or {}
        if given.get("name") and len(given.get("files") or []) > 1:
            self.add_error("name", _("A name can be given for one file only. Several files keep their own names."))
        return given

    def named(self) -> list[tuple[str, UploadedFile]]:  # type: ignore[type-arg]
        """Return each file with the name of its run."""
        given = self.cleaned_data
        return [(given["name"] or run_name(file.name or "run"), file) for file in given["files"]]


def run_name(file: str) -> str:
    """Return a file's name as the name of a run: without folder and endings, other letters as `-`."""
    stem = name_of(Path(file.replace("\\", "/")))
    fine = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._+-") else "-" for letter in stem)
    return fine.lstrip("._+-")[:100] or "run"


class MakeForm(ModelJobForm):
    """A run that is made here. A kind's form has the fields of its recipe alone (FIELDS)."""

    name = forms.CharField(max_length=100, validators=[RUN_NAME], label=gettext_lazy("Name"))
    depth = forms.IntegerField(min_value=1, max_value=10_000, initial=100, label=gettext_lazy("Documents per query"))
    k1 = forms.FloatField(
        min_value=0,
        max_value=10,
        initial=1.5,
        label=gettext_lazy("k1 of BM25"),
        help_text=gettext_lazy(
            "Term frequency saturation: with a lower value, repeated terms add less. Pyserini uses 0.9."
        ),
    )
    b = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.75,
        label=gettext_lazy("b of BM25"),
        help_text=gettext_lazy(
            "Length normalization: with a higher value, long documents score lower. Pyserini uses 0.4."
        ),
    )
    scores = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Scores of the reranked run"),
        choices=[
            ("", gettext_lazy("detect: treat as log odds if any score is below 0")),
            ("margins", gettext_lazy("log odds: apply the sigmoid first")),
            ("plain", gettext_lazy("use as they are")),
        ],
    )
    method = forms.ChoiceField(label=gettext_lazy("Method"))
    run = forms.ChoiceField(label=gettext_lazy("Run to rerank"))
    model = forms.ChoiceField(
        label=gettext_lazy("Model folder"),
        help_text=gettext_lazy("A folder among the base models of this site (QUORUM_BASE_MODELS)."),
    )
    judge = forms.ChoiceField(
        label=pgettext_lazy("judge", "Model"), help_text=gettext_lazy("Models in the judges file.")
    )
    samples = forms.IntegerField(
        min_value=1,
        max_value=20,
        required=False,
        label=gettext_lazy("Texts per query"),
        help_text=gettext_lazy("Leave blank for the method's default."),
    )
    top = forms.IntegerField(
        min_value=1, max_value=1000, initial=100, label=gettext_lazy("Documents to rerank per query")
    )
    prompt = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Prompt"),
        help_text=gettext_lazy(
            "How a model is asked that does not say so itself. monoT5 models need monot5, multilingual ones mmonot5."
        ),
    )
    batch_size = forms.IntegerField(
        min_value=1, max_value=LARGEST_BATCH, initial=32, label=gettext_lazy("Texts per batch")
    )
    over = forms.ChoiceField(required=False, label=gettext_lazy("Search with"))
    instruction = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=pgettext_lazy("retrieval", "Instruction"),
        help_text=gettext_lazy("The instruction for the model. Leave blank for none."),
    )
    query_prefix = forms.CharField(required=False, max_length=200, strip=False, label=gettext_lazy("Query prefix"))
    document_prefix = forms.CharField(
        required=False, max_length=200, strip=False, label=gettext_lazy("Document prefix")
    )
    keep_self = forms.BooleanField(required=False, label=KEEP_SELF)

    FIELDS = {
        Run.Kind.BM25: ("name", "depth", "keep_self", "k1", "b"),
        Run.Kind.HYBRID: ("name", "depth", "keep_self", "run", "method", "scores", "k1", "b"),
        Run.Kind.REWRITE: ("name", "depth", "keep_self", "method", "judge", "samples", "over", *LIMITS),
        Run.Kind.REASONING: ("name", "depth", "keep_self", "judge", "over", *LIMITS),
        Run.Kind.DENSE: (
            "name",
            "depth",
            "keep_self",
            "judge",
            "instruction",
            "query_prefix",
            "document_prefix",
            *LIMITS,
        ),
        Run.Kind.RERANK: ("name", "depth", "keep_self", "run", "judge", "instruction", "top", *LIMITS),
        Run.Kind.SPARSE: ("name", "depth", "keep_self", "model", "batch_size"),
        Run.Kind.RERANK_FOLDER: (
            "name",
            "depth",
            "keep_self",
            "run",
            "model",
            "prompt",
            "instruction",
            "top",
            "batch_size",
        ),
    }
    METHODS = {
        Run.Kind.HYBRID: [
            ("minmax", gettext_lazy("min-max: 0.1 × BM25 + 0.9 × reranker")),
            ("zscore", gettext_lazy("z-score: 0.2 × BM25 + 0.8 × reranker")),
            ("sum", gettext_lazy("sum: BM25 + 100 × reranker")),
        ],
        Run.Kind.REWRITE: [
            ("hyde", gettext_lazy("HyDE: search with a hypothetical answer passage")),
            ("query2doc", gettext_lazy("query2doc: query plus one hypothetical passage")),
            ("mugi", gettext_lazy("MuGI: query plus several hypothetical passages")),
        ],
    }

    FITTING = {Run.Kind.SPARSE: is_sparse, Run.Kind.RERANK_FOLDER: is_reranker}

    def __init__(self, *args: Any, collection: Collection, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, collection=collection, **kwargs)
        self.kind = kind
        wanted = self.FIELDS[Run.Kind(kind)]
        for name in set(self.fields) - set(wanted):
            del self.fields[name]  # one class with all fields, so that a field has one label and help on every page
        names = [(run.name, run.name) for run in ready_runs(collection)] if "run" in wanted else []
        judges = judges_for(ROLES[Run.Kind(kind)]) if "judge" in wanted else []
        dense = judges_for(ROLES[Run.Kind.DENSE]) if "over" in wanted else []
        self._choose(
            run=names,
            judge=[(name, name) for name in judges],
            over=[("", _("BM25")), *((name, _("embeddings of %(judge)s") % {"judge": name}) for name in dense)],
            method=self.METHODS.get(Run.Kind(kind), []),
            model=[(name, name) for name in offered_folders(self.FITTING[Run.Kind(kind)])] if "model" in wanted else [],
            prompt=[("", _("as the model says")), *((name, name) for name in prompt_names())],
        )
        self.fields["name"].initial = kind
        if kind == Run.Kind.HYBRID:
            self.fields["run"].label = _("Reranked run")

    def _choose(self, **choices: Sequence[tuple[str, Any]]) -> None:
        """Set what can be chosen in the fields that this kind has."""
        for name, offered in choices.items():
            if isinstance(field := self.fields.get(name), forms.ChoiceField):
                field.choices = list(offered)

    def options(self) -> dict[str, Any]:
        """Return the options of a run under a name that no run has. Raises BadInput."""
        given = {**self.cleaned_data, "kind": self.kind}
        check_name(self.collection, given["name"])
        if given.get("model"):
            given["model"] = str(settings.BASE_MODELS / given["model"])
        if given.get("over"):
            given["over"] = {"kind": Run.Kind.DENSE.value, "judge": given["over"]}
        return {key: value for key, value in given.items() if value not in ("", None)}

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The kind, and the filled-in values by label."""
        return [(_("Kind"), str(Run.Kind(self.kind).label)), *super().facts]

    @property
    def lacks(self) -> str:
        """The field for which there is nothing to choose yet; empty where there is no such field."""
        chosen = {name: self.fields.get(name) for name in ("judge", "run", "model")}
        empty = [name for name, one in chosen.items() if isinstance(one, forms.ChoiceField) and not one.choices]
        return next(iter(empty), "")


class FollowingForm(forms.Form):
    """The form that compares two runs of one system: under original and under changed instructions."""

    original = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Original instructions"))
    changed = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Changed instructions"))

    def __init__(self, *args: Any, runs: Sequence[Run], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_key = {run.pk: run for run in runs if run.state == JobState.READY}
        for field in self.fields.values():
            field.choices = [(key, run.name) for key, run in self.by_key.items()]  # type: ignore[attr-defined]

    def chosen(self) -> tuple[Run, Run]:
        """Return the run under the original instructions, and the one under the changed ones."""
        return self.by_key[self.cleaned_data["original"]], self.by_key[self.cleaned_data["changed"]]


class ChoiceOfRuns(forms.Form):
    """The base form for comparisons: runs, depth and versions of the qrels."""

    runs = forms.MultipleChoiceField(label=gettext_lazy("Runs"), widget=forms.CheckboxSelectMultiple)
    k = forms.IntegerField(min_value=1, max_value=1000, initial=K, label=gettext_lazy("Depth k"))

    def __init__(self, *args: Any, runs: Sequence[Run], versions: Sequence[Qrels], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.versions = {str(version.pk): version for version in versions}
        self.titles = [(key, version_title(version)) for key, version in self.versions.items()]
        self.by_key = {str(run.pk): run for run in runs if run.state == JobState.READY}
        self.fields["runs"].choices = [(key, run.name) for key, run in self.by_key.items()]  # type: ignore[attr-defined]
        self.fields["runs"].initial = list(self.by_key)

    def chosen(self) -> list[Run]:
        """Return the runs that were ticked."""
        return [self.by_key[key] for key in self.cleaned_data["runs"]]


class ReportForm(ChoiceOfRuns):
    """The form that starts a report on two versions of the qrels."""

    before = forms.ChoiceField(label=pgettext_lazy("value", "Before"))
    after = forms.ChoiceField(label=pgettext_lazy("value", "After"))
    aspects_k = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        label=gettext_lazy("Depth of alpha-nDCG and A-Recall"),
        help_text=gettext_lazy("Leave blank for depth k. BRIGHT-Pro uses 25."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, at in (("before", 0), ("after", -1)):
            self.fields[name].choices = self.titles  # type: ignore[attr-defined]
            self.fields[name].initial = self.titles[at][0] if self.titles else None

    def pair(self) -> tuple[Qrels, Qrels]:
        """Return the versions of the qrels before and after."""
        return self.versions[self.cleaned_data["before"]], self.versions[self.cleaned_data["after"]]


class QrelsForm(forms.Form):
    """A version of the qrels from elsewhere."""

    file = forms.FileField(
        label=gettext_lazy("Qrels file"),
        help_text=gettext_lazy("TREC or BEIR format, with the ids of this collection."),
    )
    note = forms.CharField(required=False, max_length=200, label=gettext_lazy("Note"))


class SuiteForm(forms.Form):
    """The form that creates a suite."""

    name = forms.CharField(max_length=63, validators=[RUN_NAME], label=gettext_lazy("Name"))
    title = forms.CharField(required=False, max_length=200, label=gettext_lazy("Title"))
    members = forms.MultipleChoiceField(label=gettext_lazy("Collections"), widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, collections: Sequence[Collection], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["members"].choices = [(one.name, one.title or one.name) for one in collections]  # type: ignore[attr-defined]
