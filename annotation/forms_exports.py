"""The form of a training set: the options of `export` in plain words."""

from typing import Any

from django import forms

from annotation.exports.sets.options import LABELS, PRESETS, RANKS, SHAPES, TEACHERS, Options
from annotation.exports.uploads import keep_run
from corpus.errors import BadInput
from corpus.models import Collection, Pair


def _worded(known: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, f"{name}: {words}") for name, words in known.items()]


class SetForm(forms.Form):
    """Every field may be left as it is: the values shown are the defaults of the command."""

    teacher = forms.ChoiceField(
        choices=_worded(TEACHERS),
        help_text="What the model learns to reproduce. Pairs with fewer than five votes are left out with votes.",
    )
    split = forms.FloatField(
        min_value=0.01, max_value=1, initial=0.9, label="Share of queries to train on", help_text="1: no dev file."
    )
    seed = forms.IntegerField(min_value=0, initial=0, help_text="The same seed draws the same queries again.")
    near = forms.FloatField(
        min_value=0.1,
        max_value=1,
        initial=0.8,
        required=False,
        label="Near-duplicates from similarity",
        help_text="Such texts stay on one side of the split. Empty: texts may stand on both sides.",
    )
    labels = forms.ChoiceField(choices=_worded(LABELS), initial="resolved", label="Which label wins")
    relevant_from = forms.IntegerField(
        min_value=1, required=False, label="Relevant from grade", help_text="Empty: as the collection says."
    )
    agreement = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        label="Smallest agreement of the panel",
        help_text="Share of the votes that equal a machine's label. Labels of people stay. Empty: any.",
    )
    negatives = forms.IntegerField(
        min_value=1, required=False, label="Negatives for each positive", help_text="At most. Empty: all."
    )
    documents = forms.IntegerField(
        min_value=1,
        required=False,
        label="Documents a query",
        help_text="Exactly so many; queries with fewer are left out. Empty: all.",
    )
    run = forms.FileField(
        required=False,
        label="Hard negatives from a run",
        help_text="A TREC run file. Its documents that nobody judged become negatives, marked as assumed.",
    )
    first_rank = forms.IntegerField(min_value=1, initial=RANKS[0], required=False, label="From rank")
    last_rank = forms.IntegerField(min_value=1, initial=RANKS[1], required=False, label="To rank")
    keep_holes = forms.BooleanField(
        required=False, label="Take them even where a panel or a reranker scores them high (likely holes)"
    )
    balance = forms.BooleanField(
        required=False, label="Balance length by score, so that length is no shortcut to the score"
    )
    preset = forms.ChoiceField(choices=_worded(PRESETS), initial="paper", label="Losses (Prism)")
    shape = forms.ChoiceField(choices=_worded(SHAPES), initial="pair", label="Shape (sentence-transformers)")

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scored = Pair.objects.filter(collection=collection, teacher_score__isnull=False).exists()
        self.fields["teacher"].initial = "scores" if scored else "votes"
        self.fields["relevant_from"].max_value = collection.grades  # type: ignore[attr-defined]
        self.collection = collection
        self.options = Options()

    def clean(self) -> dict[str, Any]:
        """The options, as the command would take them."""
        given = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        first, last = given.pop("first_rank", RANKS[0]), given.pop("last_rank", RANKS[1])
        upload = given.pop("run", None)
        if not self.errors:
            try:
                run = keep_run(self.collection, upload) if upload else None
                near = self.cleaned_data["near"]
                self.options = Options(**{**given, "near": near, "run": run, "ranks": (first, last)})
            except BadInput as error:
                raise forms.ValidationError(str(error)) from None
        return self.cleaned_data
