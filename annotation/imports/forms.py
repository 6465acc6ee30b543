"""Forms of an import: which files, and with which options."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy


class ManyFilesInput(forms.ClearableFileInput):
    """An input that takes several files."""

    allow_multiple_selected = True


class GivenFilesField(forms.FileField):
    """A field for any number of files; its value is a list."""

    widget = ManyFilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # type: ignore[type-arg]
        """Return the files unchecked: the importer says what is wrong with one, by its name."""
        return [file for file in data or [] if file is not None]


class FilesForm(forms.Form):
    """Files that come with the form, or the numbers of uploads that a script made before."""

    files = GivenFilesField(  # type: ignore[assignment]  # the form's own `files` is set before fields are looked up
        required=False,
        label=gettext_lazy("Files"),
        help_text=gettext_lazy(
            "CSV, TSV, Excel, Parquet, JSON, or TREC topics, documents, qrels and runs; plain, gzip or in a zip archive"
            " (a BEIR folder); exports of Quepid, Label Studio, Argilla and of this site. Choose all files at once."
        ),
    )

    def chosen_uploads(self) -> set[int]:
        """Return the numbers of uploads that the form names."""
        data: Any = self.data  # a QueryDict
        return {int(value) for value in data.getlist("upload") if value.isdecimal() and len(value) < 19}


class OptionsForm(forms.Form):
    """Options of an import."""

    bm25 = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=1000,
        label=gettext_lazy("BM25 candidates for each query"),
        help_text=gettext_lazy("Adds the best documents of each query as pairs, for example 10."),
    )
    graded_by = forms.ChoiceField(
        required=False,
        choices=[
            ("", gettext_lazy("Automatic: people’s where a file names its assessors, otherwise reference grades")),
            ("reference", gettext_lazy("Reference grades: used for measuring only")),
            ("human", gettext_lazy("People’s judgments: used as labels")),
            ("judge", gettext_lazy("Models’ judgments: used for measuring only")),
        ],
        label=gettext_lazy("Grades in the files are"),
    )
    by_position = forms.BooleanField(
        required=False, label=gettext_lazy("Number queries 1, 2, … in the order of their file")
    )
    keep_empty = forms.BooleanField(required=False, label=gettext_lazy("Keep documents without text"))
    update = forms.BooleanField(
        required=False, label=gettext_lazy("Update documents whose text changed (keeps history)")
    )
    keep_runs = forms.BooleanField(required=False, label=gettext_lazy("Also add rankings (runs) to the benchmark"))
    skip_unknown = forms.BooleanField(
        required=False, label=gettext_lazy("Leave out rows that name no known query or document")
    )
    keep_self = forms.BooleanField(
        required=False, label=gettext_lazy("Keep a query that is also a document among its own candidates")
    )

    def as_options(self) -> dict[str, Any]:
        """Return the valid form as an import stores it."""
        return {**self.cleaned_data, "bm25": self.cleaned_data["bm25"] or 0}
