"""The form of a held-out list: its name, and query ids as text or in a file."""

from pathlib import Path
from tempfile import TemporaryDirectory

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.exports.query_splits import lists
from corpus.errors import BadInput
from corpus.formats.files import FileSource

# About a million ids, which are read into memory and stored in one row.
MOST_BYTES = 20_000_000


class KeptListForm(forms.Form):
    """Form of a list of queries that are held out of training sets."""

    name = forms.SlugField(
        max_length=40,
        label=_("Name"),
        help_text=_("Letters, digits, - and _. A list of the same name is replaced."),
    )
    ids = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 8}), label=_("Query ids, one per line"))
    file = forms.FileField(required=False, label=_("Or a file of query ids"))

    def read_ids(self) -> list[str]:
        """Return the ids of the text and of the file. Raises BadInput for an invalid or too large file."""
        ids: list[str] = self.cleaned_data["ids"].split("\n")
        upload = self.cleaned_data["file"]
        if upload is None:
            return ids
        if upload.size > MOST_BYTES:
            raise BadInput(_("%(name)s is too large for a list of query ids") % {"name": upload.name})
        # FileSource opens files by their path, and recognises gzip and other kinds by their bytes.
        with TemporaryDirectory() as folder:
            path = Path(folder) / "ids"
            path.write_bytes(upload.read())
            return [*ids, *lists.read_ids(FileSource(path, name=Path(upload.name or "file").name))]
