"""Options of a training: the table of recipes as a record of options."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator, create_model

from actions.options import Options, option
from corpus.formats.files import read_text
from corpus.importing.toml_files import read_tables
from training.published.protocol import MOST_NEW_TOKENS, NEW_TOKENS
from training.published.scorer import PRECISIONS
from training.recipes.table import CHOICES, LOSSES, TABLE, RecipeOptions, check_kinds, kind_of_option

# The labels of the options.
LABELS = {
    "seed": _("Seed"),
    "epochs": _("Epochs"),
    "max_steps": _("Maximum steps"),
    "batch": _("Batch size (rows per optimizer step)"),
    "learning_rate": _("Learning rate"),
    "weight_decay": _("Weight decay"),
    "warmup_steps": _("Warm-up steps"),
    "warmup_ratio": _("Warm-up ratio (overrides warm-up steps)"),
    "schedule": _("Learning rate schedule"),
    "clip": _("Maximum gradient norm (0: no clipping)"),
    "max_length": _("Maximum length (tokens)"),
    "token_budget": _("Tokens per forward pass"),
    "packing": _("Packing"),
    "lora_rank": _("LoRA rank (0: train all weights)"),
    "lora_alpha": _("LoRA alpha"),
    "lora_dropout": _("LoRA dropout"),
    "lora_targets": _("LoRA layers"),
    "point_weight": _("Weight of the point-wise loss"),
    "sft_weight": _("Weight of the text loss"),
    "sft_share": _("Share of the texts that are learned"),
    "sft_reduction": _("Cross-entropy of a row's tokens"),
    "loss": _("Loss"),
    "prompt": _("Prompt"),
    "precision": _("Training precision"),
    "publish_precision": _("Precision of the published model"),
    "gradient_checkpointing": _("Gradient checkpointing"),
    "evaluate_every": _("Evaluate every (steps)"),
    "checkpoint_every": _("Save a checkpoint every (steps)"),
    "early_stopping": _("Early stopping (evaluations without improvement; 0: off)"),
    "dev_share": _("Share of the dev queries evaluated during training"),
    "attention": _("Attention implementation"),
    "tracking": _("Experiment tracking (besides TensorBoard)"),
    "processes": _("Processes (one GPU each)"),
    "max_prompt": _("Maximum prompt length (tokens)"),
    "max_response": _("Maximum answer length (tokens)"),
    "mini_batch": _("Documents per optimizer step"),
    "group": _("Rollouts per document"),
    "reward": _("Reward (rr: reciprocal rank, ndcg: nDCG of the rank, se: squared error to the teacher)"),
    "kl_weight": _("Weight of the KL term"),
    "clip_ratio": _("Clipping range of the probability ratio"),
    "temperature": _("Temperature (of sampling, or of the contrastive or list loss)"),
    "grpo_reduction": _("GRPO loss averaged by (rollout or token)"),
    "rollouts_every": _("Keep rollouts every (rounds)"),
    "mask_false_negatives": _("Mask false negatives in the batch"),
    "hard_negatives": _("Add a negative of each query to the batch"),
    "query_prefix": _("Query prefix (empty: as usual for the base)"),
    "teacher": _("Teacher (prism-extend: base)"),
    "teacher_prompt": _("Prompt for scoring with the base model, if it has no template for pairs"),
    "negatives": _("Negatives per group"),
    "pooling": _("Pooling (mean, last or cls; empty: as the base says)"),
}
# Lower bounds of options that may not be 0.
LEAST = {"batch": 1, "max_length": 1, "token_budget": 1, "processes": 1, "max_steps": 1, "epochs": 0.01}
LEAST |= {"learning_rate": 1e-9}


def option_names() -> list[str]:
    """Return the names of all recipes' options, the shared ones first."""
    kinds: list[type[RecipeOptions]] = [RecipeOptions]
    kinds += [type(preset) for presets in TABLE.values() for preset in presets.values()]
    names = dict.fromkeys(field.name for kind in kinds for field in fields(kind))
    return [name for name in names if name != "preset"]


def _describe_option(name: str) -> Any:
    """Return an option of the table as a field of a record, None by default, which means the preset's value."""
    kind: Any = kind_of_option(name)
    choices = CHOICES.get(name, ())
    if name == "loss":
        choices = tuple(dict.fromkeys(loss for losses in LOSSES.values() for loss in losses))
    bounds: dict[str, Any] = {"ge": LEAST.get(name, 0)} if kind in (int, float) else {}
    if kind is str and not choices:
        bounds["at_most"] = 300
    defaults = {}
    for recipe, presets in TABLE.items():
        if hasattr(preset := next(iter(presets.values())), name):
            value = getattr(preset, name)
            text = "-" if value in (None, "") else str(value)
            defaults[recipe] = ("no", "yes")[value] if isinstance(value, bool) else text
    if len(set(defaults.values())) == 1 and len(defaults) == len(TABLE):
        values = next(iter(defaults.values()))
    else:
        values = ", ".join(f"{recipe} {default}" for recipe, default in defaults.items())
    help_text = format_lazy(_("Default: {values}."), values=values)
    return (Literal[choices] if choices else kind) | None, option(LABELS[name], help_text, default=None, **bounds)


RecipeSettings: Any = create_model(
    "RecipeSettings", __base__=Options, **{name: _describe_option(name) for name in option_names()}
)
if TYPE_CHECKING:
    Recipe = str
    Preset = str
else:
    Recipe = Literal[tuple(TABLE)]
    Preset = Literal[tuple(dict.fromkeys(preset for presets in TABLE.values() for preset in presets))]


class TrainingOptions(RecipeSettings):  # type: ignore[misc]
    """Options of a training. An option of the recipe that is left out takes the preset's value."""

    recipe: Recipe = option(
        _("Recipe"), _("Each makes another kind of model, from an export in its own format."), initial="prism"
    )
    data: Annotated[str, BeforeValidator(str)] = option(
        _("Training set"),
        _("An export in the recipe's format. A program names its number, a command its folder."),
    )
    base: str = option(
        _("Base model"),
        _("A tiny one (tiny:qwen3), a model of this collection, a folder of the site's base models, or a hub id."),
        initial="tiny:qwen3",
        at_most=300,
    )
    device: Literal["cpu", "cuda"] = option(
        _("Device"), _("Where it is trained."), default="cpu", choices={"cpu": "CPU", "cuda": "GPU"}
    )
    preset: Preset | None = option(
        _("Preset"),
        _("Every recipe has paper and tiny. Empty: paper (rtriever: small), or on a page tiny for a tiny base."),
        default=None,
    )

    @property
    def option_values(self) -> dict[str, Any]:
        """The values of the recipe's options that were set, by the table's names."""
        values: dict[str, Any] = self.model_dump(include={"preset", *option_names()}, exclude_none=True)
        return values


class UseOptions(Options):
    """Options for running a published model."""

    precision: Literal[PRECISIONS] = option(  # type: ignore[valid-type]
        _("Precision"), default="auto", choices={"auto": _("auto: fp32 on a CPU, bf16 on a GPU")}
    )
    max_new_tokens: int = option(
        _("Longest text (tokens)"),
        _("Only for “Measure written texts”. Longer texts are cut and counted."),
        default=NEW_TOKENS,
        ge=1,
        le=MOST_NEW_TOKENS,
    )


def read_config(command_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a command's configuration file that its arguments do not set.

    Raises BadInput for a file that is not TOML, or a value of the wrong type.
    """
    if (path := command_options.get("config")) is None:
        return {}
    config = read_tables(read_text(path), str(path))
    check_kinds({name: value for name, value in config.items() if name in LABELS})
    return {name: value for name, value in config.items() if command_options.get(name) is None}
