"""The form of an export: its options, and its uploaded files."""

from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from actions.options import ActionForm, Choices, choices_of, text_of
from annotation.exports.formats import ALL_FORMATS, FORMATS, Format
from annotation.exports.label_sources.benchmark_tables import list_endpoints, list_versions
from annotation.exports.options import OF_FORMAT, OF_SOME, ExportOptions
from annotation.exports.query_splits.lists import list_names
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.ratings.scales import choose_ratings
from annotation.exports.snapshots import exports_folder
from annotation.models.comparisons import Preference
from corpus.errors import BadInput, BadOption
from corpus.formats.files import FileSource
from corpus.importing.run_lines import top_of_run
from corpus.models import Collection, Label, Pair
from corpus.search import lengths
from store.files import publish

MOST = 200_000_000  # Most bytes of an uploaded file; the command export takes any.
FIRST = (*OF_FORMAT, *OF_SOME, "teacher", "split", "seed")  # Fields outside the section of further options.
FILES = ("run", "tokenizer")
NAMED = {
    "test": _("A kept list, or the split that queries carry. Blank: no test split."),
    "dev": _("Blank: a share of the queries."),
    "train": _("Blank: a share of the queries, or all that are in no other split."),
}
TITLES = {"test": _("Test split"), "dev": _("Dev split"), "train": _("Training split")}
SPLIT = 0.9  # Default share of queries for training.
# Number of dev queries with a relevant document, of which a split by near-duplicates and chance leaves at least ten.
DEV_QUERIES = 16


def suggest_split(collection: Collection) -> float:
    """Return the share of queries for training that leaves enough for a test: 0.9, or less of few queries.

    Half of the dev queries choose the checkpoint and the others test it, so fewer than ten are no test.
    """
    relevant = Label.objects.filter(
        pair__collection=collection, pair__query__is_current=True, aspect=None, grade__gte=collection.relevant_from
    )
    queries = relevant.values("pair__query").distinct().count()
    # Half of them train where they are too few for both.
    if queries < 2 * DEV_QUERIES:
        return 0.5 if queries else SPLIT
    return round(min(SPLIT, 1 - DEV_QUERIES / queries), 2)


class RatingScale(NamedTuple):
    """The ratings of a format by grade, or why it needs a scale."""

    form: Format
    ratings: dict[int, float]
    problem: str = ""


class ExportForm(ActionForm):
    """Form of an export. Options that do not apply to its format are ignored."""

    options: ExportOptions

    def __init__(self, *args: Any, collection: Collection, initial: dict[str, Any] | None = None) -> None:
        self.collection = collection
        origins, versions, split_names = _count_origins(collection), list_versions(collection), list_names(collection)
        endpoints = list_endpoints()
        self.origins = {origin for origin, _n in origins}
        answers = Preference.objects.filter(comparison__set__collection=collection)
        self.has_comparisons = answers.exists()
        has_scores = Pair.objects.filter(collection=collection, teacher_score__isnull=False).exists()
        initial = {
            "origins": self.origins,
            "teacher": "scores" if has_scores else "votes",
            "split": suggest_split(collection),
            **(initial or {}),
        }
        qrels_choices: list[tuple[Any, Any]] = [("", _("none"))]
        for version in reversed(versions):
            words = _("version %(number)s, %(pairs)s judged pairs")
            title = words % {"number": version["number"], "pairs": f"{version['judged']:,}"}
            qrels_choices.append((version["number"], f"{title} ({version['note']})" if version["note"] else title))
        choices: dict[str, Choices] = {
            "origins": [(origin, f"{_(origin)} {n:,}") for origin, n in origins],
            "aggregate": [("", _("current labels")), *choices_of(ExportOptions, "aggregate")],
            "qrels": qrels_choices,
            "endpoint": [("", _("none")), *((name, name) for name in endpoints)],
        }
        super().__init__(ExportOptions, *args, choices=choices, initial=initial)
        assessors = [("", _("judges, people and imports")), ("people", _("people only")), ("judges", _("judges only"))]
        self.fields["assessors"] = forms.ChoiceField(label=_("Grades by"), choices=assessors, required=False)
        for name in FILES:
            text = text_of(ExportOptions, name)
            self.fields[name] = forms.FileField(required=False, label=text.title, help_text=text.help)
        if not versions:
            del self.fields["qrels"]
        if not endpoints:
            del self.fields["endpoint"]
        for side, help_text in NAMED.items() if split_names else ():
            split_choices = [("", _("none")), *((name, name) for name in split_names)]
            self.fields[f"{side}_queries"] = forms.ChoiceField(
                required=False, label=TITLES[side], help_text=help_text, choices=split_choices
            )
        self.order_fields(list(ExportOptions.model_fields))

    @property
    def more(self) -> list[forms.BoundField]:
        """Fields in the section of further options."""
        return [self[name] for name in self.fields if name not in FIRST]

    @property
    def scales(self) -> list[RatingScale]:
        """The ratings that the grades of the collection become in each rating format."""
        grades, scales = self.collection.grades, []
        for form in FORMATS.values():
            if form.rates is not None:
                try:
                    scales.append(RatingScale(form, choose_ratings(form.rates, grades)))
                except BadOption as error:
                    scales.append(RatingScale(form, {}, str(error)))
        return scales

    def clean(self) -> dict[str, Any]:
        """Read the options and the uploaded files, without options that do not apply."""
        data = self.cleaned_data
        if (form := ALL_FORMATS.get(data.get("format", ""))) is not None:
            ignored = set(OF_SOME) if form.is_set else set(self.fields) - {*OF_FORMAT, *form.takes}
            for name in ignored | (set() if form.labels else set(OF_FORMAT[1:])):
                data.pop(name, None)
                self.errors.pop(name, None)
        if set(data.get("origins", ())) == self.origins:
            data.pop("origins", None)
        if data.get("qrels"):
            data.pop("split", None)  # All queries of a version are test.
        if not data.get("aggregate"):
            data.pop("assessors", None)
        if named_splits := {side: name for side in SPLITS if (name := data.pop(f"{side}_queries", ""))}:
            self.fixed = {**self.fixed, "named_splits": named_splits}
        if not self.errors:
            for name in FILES:
                try:
                    if upload := data.pop(name, None):
                        self.fixed = {**self.fixed, name: keep_upload(self.collection, upload, name)}
                except BadInput as error:
                    self.add_error(name, str(error))
        return super().clean()


def keep_upload(collection: Collection, upload: "UploadedFile[bytes]", kind: str) -> str:
    """Store an uploaded run or tokenizer, and return its path.

    Raises BadInput for a file that is too large or not of the kind, and stores none.
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
        # Under a temporary name until it is complete, because the next upload of the file uses an existing one.
        part = path.with_name(f".{uuid4().hex}.part")
        with part.open("wb") as file:
            file.writelines(upload.chunks())
        part.replace(path)
    try:
        if kind == "tokenizer":
            lengths.load_tokenizer(str(path))
        else:
            deque(top_of_run(FileSource(path), 1), maxlen=0)  # Reads and checks every line.
    except BadInput as error:
        path.unlink()
        raise BadInput(str(error).replace(str(path), path.name)) from None
    publish(path)  # A worker on another machine may make the set.
    return str(path)


def _count_origins(collection: Collection) -> list[tuple[str, int]]:
    """Return the origins of the collection's labels of pairs, in order, with the number of labels of each."""
    origins = Label.objects.filter(pair__collection=collection, aspect=None).values_list("origin")
    return list(origins.annotate(label_count=Count("pk")).order_by("origin"))
