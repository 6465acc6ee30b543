"""Forms of the benchmark's pages."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy, pgettext_lazy

from benchmark.models import RUN_NAME, Qrels, Run
from benchmark.systems.chosen import K, version_title
from corpus.models import Collection
from jobs.models import JobState

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
