"""The form of an import's files."""

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
