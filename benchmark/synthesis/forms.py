"""The forms of a synthesis, one for each kind."""

from pathlib import Path
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from benchmark.models import Synthesis
from benchmark.synthesis.lifecycle import MOST_DEV
from benchmark.synthesis.queries import MOST_PAIRS, PAIRS, SHARE, list_training_sets
from benchmark.synthesis.seeds import QUERIES
from judges.model_jobs.forms import ModelJobForm
from judges.retrieval.model_requests import judges_for


class SeedsForm(ModelJobForm):
    """The base form of syntheses: the model, and how seeds are drawn."""

    kind = Synthesis.Product.BUNDLES
    roles = {"judge": "persona"}
    first: tuple[str, ...] = ()  # The fields in their order; the limits follow.

    judge = forms.ChoiceField(label=gettext_lazy("Model"))
    seed = forms.IntegerField(required=False, initial=0, label=gettext_lazy("Random seed"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(self.first)

    def options(self) -> dict[str, Any]:
        """Return the options as the service takes them."""
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return {"kind": self.kind.value, "source": QUERIES, **given}

    @property
    def lacks_seeds(self) -> bool:
        """Return whether there is nothing yet that seeds could be chosen from."""
        return False


class PairsForm(SeedsForm):
    """The base form for new queries: the number of documents found for each."""

    pairs = forms.IntegerField(
        min_value=1,
        max_value=MOST_PAIRS,
        initial=PAIRS,
        label=gettext_lazy("Documents per query"),
        help_text=gettext_lazy("BM25 finds them for the words of the new query. They become pairs to judge."),
    )


class BundlesForm(SeedsForm):
    """The form for bundles: models, the number of queries, and the share that is held out as dev split."""

    first = ("judge", "writer", "limit", "dev", "seed")

    writer = forms.ChoiceField(required=False, label=gettext_lazy("Model that writes the passages"))
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        initial=20,
        label=gettext_lazy("Seed queries"),
        help_text=gettext_lazy("Drawn at random. Leave blank for all queries."),
    )
    dev = forms.FloatField(
        min_value=0,
        max_value=MOST_DEV,
        required=False,
        label=gettext_lazy("Share of bundles for a dev split"),
        help_text=gettext_lazy(
            "Leave blank to keep synthetic queries out of dev. A dev split of synthetic queries measures a model on "
            "texts that a model wrote."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["judge"].help_text = gettext_lazy("Answers every step: persona, type, answer, aspects, plans.")
        self.offer("writer", [("", gettext_lazy("the same model")), *judges_for("compose")])


class KeywordsForm(PairsForm):
    """The form for keyword queries: the training set, and how many of its queries are rewritten."""

    kind = Synthesis.Product.KEYWORDS
    first = ("judge", "source", "share", "pairs", "seed")

    source = forms.ChoiceField(
        label=gettext_lazy("Training set"),
        help_text=gettext_lazy("Queries of its dev and test splits stay as they are."),
    )
    share = forms.FloatField(
        min_value=0.001,
        max_value=1,
        initial=SHARE,
        label=gettext_lazy("Share of its training queries"),
        help_text=gettext_lazy("Drawn at random. Prism uses 0.3."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sets = list_training_sets(self.collection)
        self.offer("source", [(path.name, label) for path, label in self.sets])

    def clean_source(self) -> str:
        """Return the folder of the chosen set."""
        folders: dict[str, Path] = {path.name: path for path, _label in self.sets}
        return str(folders[self.cleaned_data["source"]])

    @property
    def lacks_seeds(self) -> bool:
        """Return whether no training set was exported yet."""
        return not self.sets


class DocumentsForm(PairsForm):
    """The form for queries written from documents: how many documents."""

    kind = Synthesis.Product.ASK
    first = ("judge", "limit", "pairs", "seed")

    limit = forms.IntegerField(
        min_value=1, initial=20, label=gettext_lazy("Documents"), help_text=gettext_lazy("Drawn at random.")
    )


FORMS: dict[str, type[SeedsForm]] = {one.kind.value: one for one in (BundlesForm, KeywordsForm, DocumentsForm)}
