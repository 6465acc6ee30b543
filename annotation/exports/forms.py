"""The form of an export: its options, and the files that come with it."""

from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from actions.options import ActionForm, Choices, choices_of, text_of
from annotation.exports.formats import EVERY
from annotation.exports.label_sources.benchmark_tables import list_versions
from annotation.exports.listing import count_origins
from annotation.exports.options import OF_FORMAT, ExportOptions
from annotation.exports.query_splits.lists import list_names
from annotation.exports.query_splits.named import suggest_split
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.snapshots import exports_folder
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing.run_lines import top_of_run
from corpus.models import Collection, Pair
from corpus.search import lengths
from store.files import publish

MOST = 200_000_000  # Bytes of a file that comes with the page; the command export takes any.
FIRST = (*OF_FORMAT, "teacher", "split", "seed")  # Fields that have a place of their own on the page.
FILES = ("run", "tokenizer")
NAMED = {
    "test": _("A kept list, or the split that queries carry. Blank: no test split."),
    "dev": _("Blank: a share of the queries."),
    "train": _("Blank: a share of the queries, or all that are in no other split."),
}
TITLES = {"test": _("Test split"), "dev": _("Dev split"), "train": _("Training split")}


class ExportForm(ActionForm):
    """The options of an export. What its format does not take is not read. A split that can test is offered."""

    options: ExportOptions

    def __init__(self, *args: Any, collection: Collection, initial: dict[str, Any] | None = None) -> None:
        self.collection = collection
        origins, versions, names = (
            count_origins(collection),
            list_versions(collection),
            list_names(collection),
        )
        self.origins = {origin for origin, _n in origins}
        scored = Pair.objects.filter(collection=collection, teacher_score__isnull=False).exists()
        shown = {
            "origins": self.origins,
            "teacher": "scores" if scored else "votes",
            "split": suggest_split(collection),
            **(initial or {}),
        }
        choices: dict[str, Choices] = {
            "origins": [(origin, f"{_(origin)} {n:,}") for origin, n in origins],
            "aggregate": [("", _("current labels")), *choices_of(ExportOptions, "aggregate")],
            "qrels": [
                ("", _("none")),
                *((one["number"], _name_version(one)) for one in reversed(versions)),
            ],
        }
        super().__init__(ExportOptions, *args, choices=choices, initial=shown)
        whose = [
            ("", _("judges, people and imports")),
            ("people", _("people only")),
            ("judges", _("judges only")),
        ]
        self.fields["assessors"] = forms.ChoiceField(label=_("Grades by"), choices=whose, required=False)
        for name in FILES:
            words = text_of(ExportOptions, name)
            self.fields[name] = forms.FileField(required=False, label=words.title, help_text=words.help)
        if not versions:
            del self.fields["qrels"]
        for side, help_text in NAMED.items() if names else ():
            split = [("", _("none")), *((name, name) for name in names)]
            self.fields[f"{side}_queries"] = forms.ChoiceField(
                required=False, label=TITLES[side], help_text=help_text, choices=split
            )
        self.order_fields(list(ExportOptions.model_fields))

    @property
    def more(self) -> list[forms.BoundField]:
        """The fields that few change."""
        return [self[name] for name in self.fields if name not in FIRST]

    def clean(self) -> dict[str, Any]:
        """Read the record, with the files that came; what the format does not take is left out."""
        given = self.cleaned_data
        if (form := EVERY.get(given.get("format", ""))) is not None:
            without = set() if form.is_set else set(self.fields) - set(OF_FORMAT)
            for name in without | (set() if form.labels else set(OF_FORMAT[1:])):
                given.pop(name, None)
                self.errors.pop(name, None)
        if set(given.get("origins", ())) == self.origins:
            given.pop("origins", None)
        if given.get("qrels"):
            given.pop("split", None)  # The version decides, not a share.
        if not given.get("aggregate"):
            given.pop("assessors", None)
        if named := {side: name for side in SPLITS if (name := given.pop(f"{side}_queries", ""))}:
            self.fixed = {**self.fixed, "named_splits": named}
        if not self.errors:
            for name in FILES:
                try:
                    if upload := given.pop(name, None):
                        self.fixed = {**self.fixed, name: keep_upload(self.collection, upload, name)}
                except BadInput as error:
                    self.add_error(name, str(error))
        return super().clean()


def _name_version(version: dict[str, Any]) -> str:
    words = _("version %(number)s, %(pairs)s judged pairs")
    shown = words % {"number": version["number"], "pairs": f"{version['judged']:,}"}
    return f"{shown} ({version['note']})" if version["note"] else shown


def keep_upload(collection: Collection, upload: "UploadedFile[bytes]", kind: str) -> str:
    """Keep an uploaded run or tokenizer, and return its path.

    Raises BadInput for a file that is too large or none of the kind, and keeps none.
    """
    if upload.size is None or upload.size > MOST:
        raise BadInput(
            _("%(name)s is larger than %(most)s MB. Use the export command instead")
            % {"name": upload.name, "most": MOST // 1_000_000}
        )
    digest = sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    folder = exports_folder(collection) / f"{kind}s" / digest.hexdigest()
    path = folder / Path(upload.name or kind).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Under another name until it is whole: the next upload of the file takes what it finds.
        part = path.with_name(f".{uuid4().hex}.part")
        with part.open("wb") as file:
            file.writelines(upload.chunks())
        part.replace(path)
    try:
        if kind == "tokenizer":
            lengths.load_tokenizer(str(path))
        else:
            deque(top_of_run(FileSource(path), 1), maxlen=0)  # reads every line
    except BadInput as error:
        path.unlink()
        raise BadInput(str(error).replace(str(path), path.name)) from None
    publish(path)  # a worker on another machine may make the set
    return str(path)
