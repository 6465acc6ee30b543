"""The form of a training set: the options of `export` in plain words, and the files that come with it."""

from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import show_refusal
from annotation.exports.sets.options import (
    ENTROPIES,
    LABELS,
    PRESETS,
    RANKS,
    SHAPES,
    SPLITS,
    TEACHERS,
    SetOptions,
    format_defaults,
)
from annotation.exports.snapshots import exports_folder
from annotation.label_sources.qrels_versions import list_versions
from annotation.query_splits.lists import list_names
from annotation.query_splits.named import SPLIT, suggest_split
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing.run_lines import top_of_run
from corpus.models import Collection, Pair
from corpus.search import lengths
from store.files import publish

MOST = 200_000_000  # Bytes of a file that comes with the page; the command export takes any.


def _labelled_choices(known: dict[str, str]) -> list[tuple[str, Any]]:
    return [(name, format_lazy("{}: {}", name, gettext_lazy(words))) for name, words in known.items()]


class SetForm(forms.Form):
    """The options of a training set. Initial values are the command's defaults, and a split that can test."""

    teacher = forms.ChoiceField(
        label=gettext_lazy("Target score"),
        choices=_labelled_choices(TEACHERS),
        help_text=gettext_lazy(
            "Target score. With “votes”, pairs with fewer votes than the panel has members are excluded."
        ),
    )
    split = forms.FloatField(
        min_value=0.01,
        max_value=1,
        initial=SPLIT,
        label=gettext_lazy("Share of queries for training"),
        help_text=gettext_lazy("1 = no dev set"),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        initial=0,
        help_text=gettext_lazy("The same seed selects the same queries."),
    )
    near = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        label=gettext_lazy("Similarity of near-duplicates"),
        help_text=gettext_lazy(
            "Texts at least this similar stay in the same split. Blank: 0.8, or off for BEIR and MTEB, which keep "
            "every judgment. 0: off."
        ),
    )
    labels = forms.ChoiceField(
        choices=_labelled_choices(LABELS), initial="resolved", label=gettext_lazy("Label precedence")
    )
    relevant_from = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Lowest grade that counts as relevant"),
        help_text=gettext_lazy("Leave blank for the collection's setting."),
    )
    agreement = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        label=gettext_lazy("Minimum panel agreement"),
        help_text=gettext_lazy(
            "Share of votes that match a model's label. Labels from people are always kept. Leave blank for no minimum."
        ),
    )
    negatives = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Negatives per positive"),
        help_text=gettext_lazy("Maximum. Leave blank for all."),
    )
    documents = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Documents per query"),
        help_text=gettext_lazy("Exact number; queries with fewer documents are excluded. Leave blank for all."),
    )
    run = forms.FileField(
        required=False,
        label=gettext_lazy("Hard negatives from a run"),
        help_text=gettext_lazy("A TREC run file. Its unjudged documents become negatives marked as assumed."),
    )
    first_rank = forms.IntegerField(min_value=1, initial=RANKS[0], required=False, label=gettext_lazy("From rank"))
    last_rank = forms.IntegerField(min_value=1, initial=RANKS[1], required=False, label=gettext_lazy("To rank"))
    keep_holes = forms.BooleanField(
        required=False, label=gettext_lazy("Include documents that a panel or a reranker scores high (likely holes)")
    )
    balance = forms.BooleanField(
        required=False, label=gettext_lazy("Balance length by score, so that models cannot use length as a shortcut")
    )
    balance_entropy = forms.ChoiceField(
        choices=_labelled_choices(ENTROPIES),
        initial="filled",
        required=False,
        label=gettext_lazy("Balance measure"),
    )
    tokenizer = forms.FileField(
        required=False,
        label=gettext_lazy("Tokenizer for lengths"),
        help_text=gettext_lazy("A tokenizer.json file. Lengths are counted in its tokens. Leave blank to count words."),
    )
    test_queries = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Test split"),
        help_text=gettext_lazy("A kept list, or the split that queries carry. Blank: no test split."),
    )
    dev_queries = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Dev split"),
        help_text=gettext_lazy("Blank: a share of the queries."),
    )
    train_queries = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Training split"),
        help_text=gettext_lazy("Blank: a share of the queries, or all that are in no other split."),
    )
    qrels = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label=gettext_lazy("Grades of a qrels version (BEIR, MTEB)"),
        help_text=gettext_lazy("Such as one with its holes filled. All queries are then in the test split."),
    )
    preset = forms.ChoiceField(
        choices=_labelled_choices(PRESETS), initial="paper", label=gettext_lazy("Losses (Prism)")
    )
    shape = forms.ChoiceField(
        choices=_labelled_choices(SHAPES), initial="pair", label=gettext_lazy("Shape (sentence-transformers)")
    )
    allow_incomplete = forms.BooleanField(
        required=False, label=gettext_lazy("Export even if a split is empty or the training split has only one label")
    )

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scored = Pair.objects.filter(collection=collection, teacher_score__isnull=False).exists()
        self.fields["teacher"].initial = "scores" if scored else "votes"
        self.fields["split"].initial = suggest_split(collection)
        self.fields["relevant_from"].max_value = collection.grades  # type: ignore[attr-defined]
        self.collection = collection
        self.options = SetOptions()
        self._offer_names(collection)

    def _offer_names(self, collection: Collection) -> None:
        """Offer the names of splits and the versions of the qrels; without any, nothing is asked."""
        names = list_names(collection)
        versions = list_versions(collection)
        for field, choices in {
            **{f"{side}_queries": [(name, name) for name in names] for side in SPLITS},
            "qrels": [(one["number"], _name_version(one)) for one in reversed(versions)],
        }.items():
            if choices:
                self.fields[field].choices = [("", _("none")), *choices]  # type: ignore[attr-defined]
            else:
                del self.fields[field]

    def clean(self) -> dict[str, Any]:
        """Gather the options as the command would take them."""
        given = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        first, last = given.pop("first_rank", RANKS[0]), given.pop("last_rank", RANKS[1])
        names = {side: given.pop(f"{side}_queries", "") for side in SPLITS}
        given["named_splits"] = tuple(f"{side}={name}" for side, name in names.items() if name)
        uploads: dict[str, Any] = {name: given.pop(name) for name in ("run", "tokenizer") if name in given}
        if not self.errors:
            try:
                files = {name: keep_upload(self.collection, upload, name) for name, upload in uploads.items()}
                if "near" in given:
                    given["near"] = given["near"] or None
                defaults = format_defaults(self.data.get("format", ""))
                self.options = SetOptions(**{**defaults, **given, **files, "ranks": (first, last)})
            except BadInput as error:
                show_refusal(self, error)
        return self.cleaned_data


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
        # Under another name until it is whole: the next upload of the same file takes what it finds here.
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
