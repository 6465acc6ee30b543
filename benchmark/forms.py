"""Forms of the benchmark's pages."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy

from benchmark.models import RUN_NAME, Run
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
