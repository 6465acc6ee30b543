"""Options of the recipes' table as fields of the form and as options of the command, with their defaults."""

from argparse import BooleanOptionalAction
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from django import forms
from django.core.management.base import CommandParser
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from corpus.formats.files import read_text
from corpus.importing.toml_files import read_tables
from training.recipes.table import CHOICES, LOSSES, TABLE, RecipeOptions, kind_of_option

# Option -> what it is. One that is not here is shown by its name.
LABELS = {
    "seed": gettext_lazy("Seed"),
    "epochs": gettext_lazy("Epochs"),
    "max_steps": gettext_lazy("Maximum steps"),
    "batch": gettext_lazy("Batch size (rows per optimizer step)"),
    "learning_rate": gettext_lazy("Learning rate"),
    "weight_decay": gettext_lazy("Weight decay"),
    "warmup_steps": gettext_lazy("Warm-up steps"),
    "warmup_ratio": gettext_lazy("Warm-up ratio (overrides warm-up steps)"),
    "schedule": gettext_lazy("Learning rate schedule"),
    "clip": gettext_lazy("Maximum gradient norm (0: no clipping)"),
    "max_length": gettext_lazy("Maximum length (tokens)"),
    "token_budget": gettext_lazy("Tokens per forward pass"),
    "packing": gettext_lazy("Packing"),
    "lora_rank": gettext_lazy("LoRA rank (0: train all weights)"),
    "lora_alpha": gettext_lazy("LoRA alpha"),
    "lora_dropout": gettext_lazy("LoRA dropout"),
    "lora_targets": gettext_lazy("LoRA layers"),
    "point_weight": gettext_lazy("Weight of the point-wise loss"),
    "sft_weight": gettext_lazy("Weight of the text loss"),
    "sft_share": gettext_lazy("Share of the texts that are learned"),
    "sft_reduction": gettext_lazy("Cross-entropy of a row's tokens"),
    "loss": gettext_lazy("Loss"),
    "prompt": gettext_lazy("Prompt"),
    "precision": gettext_lazy("Training precision"),
    "publish_precision": gettext_lazy("Precision of the published model"),
    "gradient_checkpointing": gettext_lazy("Gradient checkpointing"),
    "evaluate_every": gettext_lazy("Evaluate every (steps)"),
    "checkpoint_every": gettext_lazy("Save a checkpoint every (steps)"),
    "early_stopping": gettext_lazy("Early stopping (evaluations without improvement; 0: off)"),
    "dev_share": gettext_lazy("Share of the dev queries evaluated during training"),
    "attention": gettext_lazy("Attention implementation"),
    "tracking": gettext_lazy("Experiment tracking (besides TensorBoard)"),
    "processes": gettext_lazy("Processes (one GPU each)"),
    "max_prompt": gettext_lazy("Maximum prompt length (tokens)"),
    "max_response": gettext_lazy("Maximum answer length (tokens)"),
    "mini_batch": gettext_lazy("Documents per optimizer step"),
    "group": gettext_lazy("Rollouts per document"),
    "reward": gettext_lazy("Reward (rr: reciprocal rank, ndcg: nDCG of the rank, se: squared error to the teacher)"),
    "kl_weight": gettext_lazy("Weight of the KL term"),
    "clip_ratio": gettext_lazy("Clipping range of the probability ratio"),
    "temperature": gettext_lazy("Temperature (of sampling, or of the contrastive or list loss)"),
    "grpo_reduction": gettext_lazy("GRPO loss averaged by (rollout or token)"),
    "rollouts_every": gettext_lazy("Keep rollouts every (rounds)"),
    "mask_false_negatives": gettext_lazy("Mask false negatives in the batch"),
    "query_prefix": gettext_lazy("Query prefix (empty: as usual for the base)"),
    "teacher": gettext_lazy("Teacher (prism-extend: base)"),
    "teacher_prompt": gettext_lazy("Prompt for scoring with the base model, if it has no template for pairs"),
    "negatives": gettext_lazy("Negatives per group"),
    "pooling": gettext_lazy("Pooling (mean, last or cls; empty: as the base says)"),
}
LEAST = {"batch": 1, "max_length": 1, "token_budget": 1, "processes": 1, "max_steps": 1, "seed": 0}


def option_names() -> list[str]:
    """Return the names of all options of all recipes, those of every recipe first."""
    kinds = [type(preset) for presets in TABLE.values() for preset in presets.values()]
    every: list[type[RecipeOptions]] = [RecipeOptions, *kinds]
    names = dict.fromkeys(field.name for kind in every for field in fields(kind))
    return [name for name in names if name != "preset"]


def default_values(name: str) -> str:
    """Return an option's default in each recipe's first preset, once where all agree."""
    found = {recipe: getattr(next(iter(presets.values())), name, None) for recipe, presets in TABLE.items()}
    known = {recipe: value for recipe, value in found.items() if hasattr(next(iter(TABLE[recipe].values())), name)}
    texts = {recipe: _format_default(value) for recipe, value in known.items()}
    if len(set(texts.values())) == 1 and len(texts) == len(TABLE):
        return next(iter(texts.values()))
    return ", ".join(f"{recipe} {text}" for recipe, text in texts.items())


def _format_default(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value in (None, "") else str(value)


def option_choices(name: str) -> tuple[str, ...]:
    """Return the values that an option may have; none where any will do."""
    if name == "loss":
        return tuple(dict.fromkeys(loss for losses in LOSSES.values() for loss in losses))
    return tuple(CHOICES.get(name, ()))


def make_field(name: str) -> forms.Field:
    """Return the form's field of an option; empty takes the preset's value."""
    kind = kind_of_option(name)
    common: dict[str, Any] = {
        "required": False,
        "label": LABELS.get(name, name),
        "help_text": format_lazy(gettext_lazy("Default: {values}."), values=default_values(name)),
    }
    blank = ("", gettext_lazy("from the preset"))
    if kind is bool:
        return forms.ChoiceField(
            choices=[blank, ("true", gettext_lazy("Yes")), ("false", gettext_lazy("No"))], **common
        )
    if choices := option_choices(name):
        return forms.ChoiceField(choices=[blank, *((one, one) for one in choices)], **common)
    if kind is int:
        return forms.IntegerField(min_value=LEAST.get(name, 0), **common)
    if kind is float:
        return forms.FloatField(min_value=0.0, **common)
    # A prefix's last blank parts it from the query.
    return forms.CharField(max_length=300, strip=name != "query_prefix", **common)


def given_options(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was filled in, by the table's names."""
    chosen = {name: cleaned[name] for name in option_names() if cleaned.get(name) not in (None, "")}
    return {name: value == "true" if kind_of_option(name) is bool else value for name, value in chosen.items()}


def add_arguments(parser: CommandParser) -> None:
    """Add all options of the table to a command, and the file that may hold them."""
    parser.add_argument("--config", type=Path, metavar="F.toml", help="TOML file with options; options given here win")
    parser.add_argument(
        "--preset", help="defaults of the recipe: " + ", ".join(sorted({p for t in TABLE.values() for p in t}))
    )
    for name in option_names():
        flag, kind = "--" + name.replace("_", "-"), kind_of_option(name)
        words = f"{LABELS.get(name, name)} (default: {default_values(name)})".replace("%", "%%")
        if kind is bool:
            parser.add_argument(flag, action=BooleanOptionalAction, default=None, help=words)
        elif choices := option_choices(name):
            parser.add_argument(flag, choices=choices, help=words)
        else:
            parser.add_argument(flag, type=kind, metavar="TEXT" if kind is str else "N", help=words)


def read_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a command was given, its file's first. Raises BadInput for a file that is no TOML."""
    given = read_config(options["config"]) if options.get("config") else {}
    names = ["preset", *option_names()]
    return given | {name: options[name] for name in names if options.get(name) is not None}


def read_config(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds; the table checks names and values."""
    return read_tables(read_text(path), str(path))
