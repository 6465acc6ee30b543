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

LARGEST = 200_000_000  # Bytes of an uploaded file; the command `export` takes larger ones.
MAIN_FIELDS = (*OF_FORMAT, *OF_SOME, "teacher", "split", "seed")  # The others are in the section of further options.
FILE_FIELDS = ("run", "tokenizer")
# Fields that name a list of queries for each split of a training set: their titles and help.
SPLIT_TITLES = {"test": _("Test split"), "dev": _("Dev split"), "train": _("Training split")}
SPLIT_HELP = {
    "test": _("A kept list, or the split that queries carry. Blank: no test split."),
    "dev": _("Blank: a share of the queries."),
    "train": _("Blank: a share of the queries, or all that are in no other split."),
}
TRAINING_SHARE = 0.9  # Default share of the queries for training.
# Number of queries with a relevant document that a suggested split leaves for dev. A split is by chance and keeps
# near-duplicates together, so dev may get a few less, but at least ten.
DEV_QUERIES = 16


def suggest_split(collection: Collection) -> float:
    """Return the share of queries for training that leaves enough for a test: 0.9, or less where there are few queries.

    Half of the dev queries choose the checkpoint and the others test it, so fewer than ten are no test.
    """
    relevant = Label.objects.filter(
        pair__collection=collection, pair__query__is_current=True, aspect=None, grade__gte=collection.relevant_from
    )
    queries = relevant.values("pair__query").distinct().count()
    # Half of them train where they are too few for both.
    if queries < 2 * DEV_QUERIES:
        return 0.5 if queries else TRAINING_SHARE
    return round(min(TRAINING_SHARE, 1 - DEV_QUERIES / queries), 2)


class RatingScale(NamedTuple):
    """The rating of each grade in a rating format, or why the format needs a scale for these grades."""

    form: Format
    ratings: dict[int, float]
    problem: str = ""


class ExportForm(ActionForm):
    """Form of an export. Options that do not apply to its format are ignored."""

    options: ExportOptions

    def __init__(self, *args: Any, collection: Collection, initial: dict[str, Any] | None = None) -> None:
        self.collection = collection
        versions, split_names, endpoints = list_versions(collection), list_names(collection), list_endpoints()
        # The origins of the labels of pairs, with the number of labels of each.
        labels = Label.objects.filter(pair__collection=collection, aspect=None)
        origins = list(labels.values_list("origin").annotate(label_count=Count("pk")).order_by("origin"))
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
        for name in FILE_FIELDS:
            text = text_of(ExportOptions, name)
            self.fields[name] = forms.FileField(required=False, label=text.title, help_text=text.help)
        if not versions:
            del self.fields["qrels"]
        if not endpoints:
            del self.fields["endpoint"]
        if split_names:
            split_choices = [("", _("none")), *((name, name) for name in split_names)]
            for side, help_text in SPLIT_HELP.items():
                self.fields[f"{side}_queries"] = forms.ChoiceField(
                    required=False, label=SPLIT_TITLES[side], help_text=help_text, choices=split_choices
                )
        self.order_fields(list(ExportOptions.model_fields))

    @property
    def more(self) -> list[forms.BoundField]:
        """Fields in the section of further options."""
        return [self[name] for name in self.fields if name not in MAIN_FIELDS]

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
        form = ALL_FORMATS.get(data.get("format", ""))
        if form is not None:
            # A training set takes all options except those of single files; a single file takes those of all formats
            # and its own.
            ignored = set(OF_SOME) if form.is_set else set(self.fields) - {*OF_FORMAT, *form.takes}
            if not form.labels:
                # Without labels, of the options of all formats only the format itself remains.
                ignored |= set(OF_FORMAT) - {"format"}
            for name in ignored:
                data.pop(name, None)
                self.errors.pop(name, None)
        # All origins are the same as no limit.
        if set(data.get("origins", ())) == self.origins:
            data.pop("origins", None)
        if data.get("qrels"):
            data.pop("split", None)  # All queries of a version are test.
        if not data.get("aggregate"):
            data.pop("assessors", None)
        # Options without a field of the same name are passed as fixed values.
        named_splits = {side: name for side in SPLITS if (name := data.pop(f"{side}_queries", ""))}
        if named_splits:
            self.fixed = {**self.fixed, "named_splits": named_splits}
        if not self.errors:
            for name in FILE_FIELDS:
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
    if upload.size is None or upload.size > LARGEST:
        raise BadInput(
            _("%(name)s is larger than %(most)s MB. Use the export command instead")
            % {"name": upload.name, "most": LARGEST // 1_000_000}
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
