"""The form that starts a training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.errors import BadInput
from training.jobs.option_fields import given_options, make_field, option_names
from training.models import Model
from training.recipes import base_models
from training.recipes.data import named_format
from training.recipes.table import RECIPES, TABLE
from training.serving.protocol import MOST_NEW_TOKENS, NEW_TOKENS
from training.serving.scorer import PRECISIONS

OTHER = "other"
# Recipe -> what it makes, and what its training set and base have to be.
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
    """A form for the judge that scores what the models wrote, and for its budget."""

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


class UseForm(forms.Form):
    """A form for how a published model is run."""

    precision = forms.ChoiceField(
        choices=[
            ("auto", gettext_lazy("auto: fp32 on a CPU, bf16 on a GPU")),
            *((name, name) for name in PRECISIONS[1:]),
        ],
        initial="auto",
        required=False,
        label=gettext_lazy("Precision"),
    )
    max_new_tokens = forms.IntegerField(
        initial=NEW_TOKENS,
        required=False,
        min_value=1,
        max_value=MOST_NEW_TOKENS,
        label=gettext_lazy("Longest text (tokens)"),
        help_text=gettext_lazy("Only for “Measure written texts”. Longer texts are cut and counted."),
    )


class TrainForm(forms.Form):
    """A form for rows, base and recipe of a training; empty fields take the preset's value."""

    training_set = forms.ChoiceField(
        label=gettext_lazy("Training set"),
        help_text=gettext_lazy("Exports of this collection. A recipe learns from one format."),
    )
    recipe = forms.ChoiceField(choices=[(name, name) for name in TABLE], initial="prism", label=gettext_lazy("Recipe"))
    base = forms.ChoiceField(choices=BASES, initial=BASES[0][0], label=gettext_lazy("Base model"))
    base_path = forms.CharField(
        required=False,
        max_length=300,
        label=gettext_lazy("Folder or hub id"),
        help_text=gettext_lazy(
            "Only for the last choice above: the name of a folder in the site's base model "
            "folder (QUORUM_BASE_MODELS), or owner/name."
        ),
    )
    preset = forms.ChoiceField(
        choices=[
            ("", gettext_lazy("tiny for a tiny base model, otherwise paper")),
            *((name, name) for name in dict.fromkeys(preset for presets in TABLE.values() for preset in presets)),
        ],
        required=False,
        label=gettext_lazy("Preset"),
        help_text=gettext_lazy("Recipe defaults. Every recipe has paper and tiny."),
    )
    device = forms.ChoiceField(choices=[("cpu", "CPU"), ("cuda", "GPU")], initial="cpu", label=gettext_lazy("Device"))
    max_steps = forms.IntegerField(required=False, min_value=1, label=gettext_lazy("Maximum steps"))
    epochs = forms.FloatField(required=False, min_value=0.01, label=gettext_lazy("Epochs"))
    learning_rate = forms.FloatField(required=False, min_value=1e-9, label=gettext_lazy("Learning rate"))
    sft_reduction = forms.ChoiceField(
        choices=[("", gettext_lazy("from the preset")), ("sum", "sum"), ("mean", "mean")],
        required=False,
        label=gettext_lazy("Cross-entropy of a row's tokens"),
    )
    seed = forms.IntegerField(required=False, min_value=0, label=gettext_lazy("Seed"))

    def __init__(self, *args: Any, sets: list[tuple[str, str]], models: Sequence[Model] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field, bases = self.fields["training_set"], self.fields["base"]
        assert isinstance(field, forms.ChoiceField) and isinstance(bases, forms.ChoiceField)
        field.choices = sets
        # The last choice is the one with its own field: it stays at the end.
        bases.choices = [*BASES[:-1], *((model.folder, model.name) for model in models), BASES[-1]]
        # A model of a tiny base takes the tiny preset too.
        self.tiny = {model.folder for model in models if model.words.startswith("tiny")}
        for name in option_names():
            # The most used are above; the others follow. All say their defaults.
            made = make_field(name)
            self.fields.setdefault(name, made).help_text = made.help_text

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The recipes, each with what it makes and what it needs."""
        return [(name, str(NEEDS[name])) for name in TABLE]

    @property
    def further_options(self) -> list[forms.BoundField]:
        """The fields of the options that are not declared here."""
        return [self[name] for name in option_names() if name not in self.declared_fields]

    def clean(self) -> dict[str, Any]:
        """Check that the chosen base fits the recipe; take it from the second field where that is named."""
        given: dict[str, Any] = super().clean() or {}
        base = str(given.get("base") or "")
        # The second field counts only where the first one says so.
        if base == OTHER:
            base = self._named(str(given.get("base_path") or "").strip())
        given["base"] = base
        wanted = RECIPES[given["recipe"]].base if given.get("recipe") else "embedder"  # Embedders are made of both.
        if base.startswith("tiny:") and wanted != "embedder" and (base == "tiny:encoder") != (wanted == "encoder"):
            words = _(
                "The recipe %(recipe)s cannot train this base model: cross-encoder takes the encoder, rtriever any."
            )
            self.add_error("base", words % {"recipe": given["recipe"]})
        self._check_format(given)
        return given

    def _check_format(self, given: dict[str, Any]) -> None:
        """Refuse a training set of another format than the recipe's."""
        if not given.get("recipe") or not given.get("training_set"):
            return
        found, wanted = named_format(Path(given["training_set"])), RECIPES[given["recipe"]].format
        if found and found != wanted:  # What has no manifest is refused later.
            words = _("The recipe %(recipe)s learns from exports in the format %(wanted)s; this one is %(found)s.")
            self.add_error("training_set", words % {"recipe": given["recipe"], "wanted": wanted, "found": found})

    def _named(self, name: str) -> str:
        if not name:
            self.add_error("base_path", _("Enter a model folder or a hub id, or choose a tiny base model."))
            return ""
        try:
            return base_models.of_page(name)
        except BadInput as error:
            self.add_error("base_path", str(error))
            return ""

    def options(self) -> dict[str, Any]:
        """Return what was filled in, by the recipe's names."""
        given = self.cleaned_data
        chosen = given_options(given)
        preset = given["preset"] or (
            "tiny" if given["base"].startswith("tiny:") or given["base"] in self.tiny else "paper"
        )
        return {"preset": preset, **chosen}
