"""Forms of training: the one that starts a training, and the one that asks a judge."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import ActionForm
from corpus.models import Collection
from training.jobs import pages
from training.jobs.options import option_names
from training.models import Model
from training.recipes.table import TABLE

OTHER = "other"
MOST_USED = ("preset", "device", "max_steps", "epochs", "learning_rate", "sft_reduction", "seed")
# For each recipe: the model it trains, and the training set and base that it needs.
NEEDS = {
    "prism": gettext_lazy(
        "A reranker that also writes contribution and evidence. Needs an export in the format Prism with target scores "
        "and a causal base model."
    ),
    "prism-extend": gettext_lazy(
        "Teaches an existing reranker to write contribution and evidence. Needs an export in the format Prism with "
        "contribution and evidence (no target scores), and a causal reranker as base model."
    ),
    "ablation": gettext_lazy(
        "Compares losses of distillation. Needs an export in the format Prism with target scores, at least one "
        "relevant and seven other documents per query, and a causal base model."
    ),
    "cross-encoder": gettext_lazy(
        "A small, fast reranker. Needs an export in the format Prism with labels or target scores, and an encoder as "
        "base model."
    ),
    "erank-sft": gettext_lazy(
        "A reranker that reasons before it scores. Needs an export in the format ERank (run synthesize_scores first) "
        "and a causal base model."
    ),
    "erank-grpo": gettext_lazy(
        "Improves an erank-sft model by rewards. Needs an export in the format ERank, and a model of erank-sft as base "
        "model."
    ),
    "rtriever": gettext_lazy(
        "An embedding model for retrieval. Needs an export in the format RTriever and any base model, causal or "
        "encoder."
    ),
}
BASES = [
    ("tiny:qwen3", gettext_lazy("Tiny, Qwen3 architecture (random weights): for a test run")),
    ("tiny:qwen3.5", gettext_lazy("Tiny, Qwen3.5 architecture (random weights)")),
    ("tiny:encoder", gettext_lazy("Tiny encoder (random weights), for the recipes cross-encoder and rtriever")),
    (OTHER, gettext_lazy("A base model folder on the server, or a hub id in its local cache")),
]


class JudgeForm(forms.Form):
    """A form for the judge that scores the models' texts, and for its budget."""

    judge = forms.ChoiceField(label=gettext_lazy("Judge"))
    budget = forms.FloatField(
        required=False,
        min_value=0.0,
        initial=5,
        label=gettext_lazy("Budget (USD)"),
        help_text=gettext_lazy("Limit for the rows of each model. Leave blank for no limit."),
    )

    def __init__(self, *args: Any, judges: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["judge"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in judges]


def form_of(record: Any, collection: Collection, *sent: Any, **shown: Any) -> "TrainForm":
    """Return the form of a training or a curve, with the sets and models of a collection."""
    sets, models = pages.training_sets(collection), pages.base_choices(collection)
    return TrainForm(record, *sent, sets=sets, models=models, **shown)


class TrainForm(ActionForm):
    """The form of a training, whose base is one of a list or named in a second field."""

    def __init__(
        self, record: Any, *args: Any, sets: list[tuple[str, str]], models: Sequence[Model] = (), **kwargs: Any
    ) -> None:
        self.sets = sets
        bases = [*BASES[:-1], *((model.folder, model.name) for model in models), BASES[-1]]
        super().__init__(record, *args, choices={"data": sets, "base": bases}, **kwargs)
        self.fields["base_path"] = forms.CharField(
            required=False,
            max_length=300,
            label=gettext_lazy("Folder or hub id"),
            help_text=gettext_lazy(
                "Only for the last choice above: the name of a folder in the site's base model "
                "folder (QUORUM_BASE_MODELS), or owner/name."
            ),
        )
        # A prefix may end with a space, which separates it from the query.
        self.fields["query_prefix"].strip = False  # type: ignore[attr-defined]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The recipes, each with the model it trains and what it needs."""
        return [(name, str(NEEDS[name])) for name in TABLE]

    @property
    def most_used(self) -> list[forms.BoundField]:
        """The most used options, which are shown first."""
        return [self[name] for name in MOST_USED]

    @property
    def further_options(self) -> list[forms.BoundField]:
        """The remaining options of the recipes."""
        return [self[name] for name in option_names() if name not in MOST_USED]

    def clean(self) -> dict[str, Any]:
        """Take the base from the second field if the first one is set to OTHER."""
        base_path = self.cleaned_data.pop("base_path", "").strip()
        if self.cleaned_data.get("base") == OTHER:
            if not base_path:
                self.add_error("base_path", _("Enter a model folder or a hub id, or choose a tiny base model."))
            self.cleaned_data["base"] = base_path
        return super().clean()
