"""The form of a kept list: its name, and query ids typed or in a file."""

from pathlib import Path
from tempfile import TemporaryDirectory

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.exports.query_splits import lists
from corpus.errors import BadInput
from corpus.formats.files import FileSource

# About a million ids, which are held in memory, and then in one row.
MOST_BYTES = 20_000_000


class KeptListForm(forms.Form):
    """A list of queries that stay out of training sets."""

    name = forms.SlugField(
        max_length=40,
        label=_("Name"),
        help_text=_("Letters, digits, - and _. A list of the same name is replaced."),
    )
    ids = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 8}), label=_("Query ids, one per line"))
    file = forms.FileField(required=False, label=_("Or a file of query ids"))

    def read_ids(self) -> list[str]:
        """Return the ids of both. Raises BadInput for a file that is none, or too large."""
        ids: list[str] = self.cleaned_data["ids"].split("\n")
        upload = self.cleaned_data["file"]
        if upload is None:
            return ids
        if upload.size > MOST_BYTES:
            raise BadInput(_("%(name)s is too large for a list of query ids") % {"name": upload.name})
        # On the disk, because FileSource tells gzip and foreign files by their bytes and opens them by their path.
        with TemporaryDirectory() as folder:
            path = Path(folder) / "ids"
            path.write_bytes(upload.read())
            return [*ids, *lists.read_ids(FileSource(path, name=Path(upload.name or "file").name))]
