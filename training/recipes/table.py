"""The table of recipes with their options and presets, and the checks of options (pure; Prism 5.1, its code)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, get_args, get_type_hints

from charts.translation import gettext_noop as _
from training.recipes.refusals import RefusedTraining

# A training warns of a learning rate that is this many times the preset's, or more.
FAR_ABOVE = 5
FAR_RATE = _(
    "learning_rate %(rate)s is %(times)s times the %(usual)s of preset %(preset)s: a base that is trained already is "
    "likely to lose what it knows"
)
UNKNOWN_CHOICE = _("%(option)s must be one of %(allowed)s, not %(value)r")


@dataclass(frozen=True)
class RecipeOptions:
    """The options that all recipes share: with set and base, they determine the result of a training."""

    preset: str = "paper"
    seed: int = 0
    epochs: float = 2.0
    max_steps: int | None = None
    batch: int = 8  # Rows of each optimiser step (the paper: 1 x 8 accumulated).
    learning_rate: float = 1e-5
    weight_decay: float = 0.01
    warmup_steps: int = 100
    schedule: str = "cosine"  # cosine or constant, after the warm-up.
    clip: float = 1.0  # Maximum norm of the gradient; 0: no clipping.
    max_length: int = 10_240  # Tokens of a row; only its document is cut.
    # Tokens of one forward pass, padding included. It affects memory, not the gradient.
    token_budget: int = 10_240
    packing: bool = False  # Several rows in one sequence, where that is exact.
    lora_rank: int = 64  # 0: all weights are trained, without an adapter.
    lora_alpha: int = 128
    lora_dropout: float = 0.0
    # Linear layers that get an adapter: all of them, or names separated by commas (q_proj,v_proj).
    lora_targets: str = "all-linear"
    point_weight: float = 20.0
    sft_weight: float = 1.0
    # Over the tokens of a row's target: sum (Prism eq. 4) or mean (the released code).
    sft_reduction: str = "sum"
    loss: str = "hybrid"  # prism: hybrid; cross-encoder: bce, mse or lambda.
    prompt: str = "quorum"  # A name in rendering.PROMPTS.
    precision: str = "auto"  # fp32, bf16, or auto: bf16 on a GPU, fp32 on the CPU.
    gradient_checkpointing: bool | None = None  # None: on a GPU, except for tiny models.
    # Steps between measurements on the dev split, each with a checkpoint; None: four measurements.
    evaluate_every: int | None = None
    # Steps between checkpoints to resume from; None: at each measurement, and at least every 100.
    checkpoint_every: int | None = None
    processes: int = 1  # Processes that share each step's rows; with device cuda, each has its own GPU.
    warmup_ratio: float | None = None  # Share of all steps; overrides warmup_steps.
    early_stopping: int = 0  # Training ends after this many measurements without a better one; 0: never.
    dev_share: float = 1.0  # Share of the dev split's queries that are measured during training.
    attention: str = "auto"  # auto: transformers' default.
    # Number format of the published weights. Scored in fp32, they must match the trained margins to 1e-4 (fp32),
    # 0.02 (fp16) or 0.2 (bf16).
    publish_precision: str = "fp32"
    tracking: str = "none"  # A tracker of experiments in addition to TensorBoard's files.


@dataclass(frozen=True)
class PrismOptions(RecipeOptions):
    """Options of recipes whose model scores and writes text."""

    # Of the rows with a text, the share whose text is learned; below 1 in stage one (Prism 6.3).
    sft_share: float = 1.0


@dataclass(frozen=True)
class ChainOptions(RecipeOptions):
    """Options of both recipes of ERank."""

    max_prompt: int = 1024  # Tokens of a prompt; its document is cut.
    max_response: int = 1024  # Tokens of an answer.


@dataclass(frozen=True)
class GrpoOptions(ChainOptions):
    """Options of the reinforcement learning. `batch`: documents (prompts) of a round of rollouts, in whole queries."""

    mini_batch: int = 320  # Documents of one optimiser step.
    group: int = 5  # Rollouts of each document (G).
    reward: str = "rr"  # rr, ndcg or se.
    kl_weight: float = 0.001
    clip_ratio: float = 0.2
    temperature: float = 1.0
    # Mean over a rollout's tokens, then over rollouts (the paper's formula), or over all tokens (verl's default).
    grpo_reduction: str = "rollout"
    rollouts_every: int = 10  # The rollouts of every tenth round are stored.


@dataclass(frozen=True)
class RetrieverOptions(RecipeOptions):
    """Options of the training of an embedder."""

    temperature: float = 0.02
    # Whether a query's positives are masked where they are in-batch negatives of it (not specified in the paper).
    mask_false_negatives: bool = False
    # Whether a negative of each query joins the batch, whose other documents are negatives without it, too.
    hard_negatives: bool = True
    query_prefix: str = ""  # Before every query; empty: Qwen3-Embedding's for causal bases, none for encoders.
    pooling: str = ""  # mean, last or cls; empty: the base's own.


@dataclass(frozen=True)
class ExtendOptions(PrismOptions):
    """Options of the extension of an existing reranker."""

    teacher: str = "base"  # The only teacher: the base before it is trained.
    teacher_prompt: str = ""  # For a base without a template for pairs: a name in rendering.PROMPTS.


@dataclass(frozen=True)
class AblationOptions(RecipeOptions):
    """Options of the comparison of losses. `batch`: groups of a step, each with one positive."""

    negatives: int = 7  # Negatives of a group.
    temperature: float = 2.0  # Softens both sides of the list loss, and the weights of the rank loss.


@dataclass(frozen=True)
class RecipeEntry:
    """A recipe: the path of its class (imported when training begins), its presets, the default first, and losses."""

    path: str
    presets: Mapping[str, RecipeOptions]
    losses: tuple[str, ...]
    base: str = "causal"  # The kind of its base models: causal, encoder or embedder.
    # The export format of its sets, and the function that reads them into a data.TrainingSet.
    format: str = "prism"
    reader: str = "training.recipes.data.read_training_set"


PRISM = PrismOptions()
# `tiny` is ours: tiny models learn nothing at the paper's rate. Its max_length fits 95% of the bundled collection.
PRISM_PRESETS = {
    "paper": PRISM,
    "paper-0.8b": replace(PRISM, preset="paper-0.8b", epochs=3.0),
    "paper-9b": replace(PRISM, preset="paper-9b", lora_rank=32, lora_alpha=64),
    "released": replace(
        PRISM, preset="released", point_weight=10.0, warmup_steps=1000, batch=16, max_length=8192,
        token_budget=8192, sft_reduction="mean",
    ),
    "tiny": replace(
        PRISM, preset="tiny", epochs=4.0, learning_rate=1e-3, warmup_steps=10, max_length=768, token_budget=3072,
        lora_rank=16, lora_alpha=32,
    ),
}  # fmt: skip
# As Prism's 4B configuration (5.1, "Extension experiment").
EXTEND = ExtendOptions()
EXTEND_PRESETS = {
    "paper": EXTEND,
    "tiny": replace(
        EXTEND, preset="tiny", epochs=4.0, learning_rate=1e-3, warmup_steps=10, max_length=768, token_budget=3072,
        lora_rank=16, lora_alpha=32, teacher_prompt="qwen3-reranker",
    ),
}  # fmt: skip
# Groups, temperature, base and equal weights are the paper's (Prism appendix B); for the rest see ADR 0081.
ABLATION = AblationOptions(
    max_length=2048, token_budget=16_384, point_weight=1.0, sft_weight=0.0, loss="point", prompt="qwen3-reranker",
)  # fmt: skip
ABLATION_PRESETS = {
    "paper": ABLATION,
    "tiny": replace(
        ABLATION, preset="tiny", epochs=4.0, batch=4, learning_rate=1e-3, warmup_steps=10, max_length=768,
        token_budget=6144, lora_rank=16, lora_alpha=32, prompt="quorum",
    ),
}  # fmt: skip
CROSS_ENCODER = RecipeOptions(
    epochs=1.0, batch=16, learning_rate=2e-5, max_length=512, token_budget=8192, lora_rank=0, loss="bce",
    sft_weight=0.0, point_weight=1.0,
)  # fmt: skip
CROSS_ENCODER_PRESETS = {
    "paper": CROSS_ENCODER,
    "tiny": replace(
        CROSS_ENCODER, preset="tiny", epochs=4.0, learning_rate=1e-3, warmup_steps=10, max_length=512,
        token_budget=8192,
    ),
}  # fmt: skip
ERANK_SFT = ChainOptions(
    epochs=1.0, batch=128, learning_rate=1e-4, weight_decay=0.0, warmup_ratio=0.05, max_length=2048,
    token_budget=16_384, lora_rank=32, lora_alpha=64, point_weight=0.0, loss="cross-entropy",
)  # fmt: skip
ERANK_SFT_PRESETS = {
    "paper": ERANK_SFT,
    "token-mean": replace(ERANK_SFT, preset="token-mean", sft_reduction="mean"),  # LLaMA-Factory's default.
    "tiny": replace(
        ERANK_SFT, preset="tiny", epochs=20.0, batch=16, learning_rate=5e-3, max_length=384, max_prompt=320,
        max_response=64, token_budget=6144, lora_rank=0,
    ),
}  # fmt: skip
ERANK_GRPO = GrpoOptions(
    epochs=10.0, batch=1280, learning_rate=1e-6, warmup_steps=0, schedule="constant", max_length=2048,
    token_budget=16_384, lora_rank=0, point_weight=0.0, sft_weight=0.0, loss="grpo",
)  # fmt: skip
ERANK_GRPO_PRESETS = {
    "paper": ERANK_GRPO,
    "tiny": replace(
        ERANK_GRPO, preset="tiny", batch=48, mini_batch=48, learning_rate=3e-4, max_length=384, max_prompt=320,
        max_response=64, token_budget=12_288,
    ),
}  # fmt: skip
RTRIEVER = RetrieverOptions(
    epochs=5.0, batch=768, learning_rate=1e-5, warmup_ratio=0.05, max_length=2048,
    token_budget=16_384, lora_rank=16, lora_alpha=32, point_weight=0.0, sft_weight=0.0, loss="contrastive",
)  # fmt: skip
# The paper's batch of 768 makes one step of a few hundred queries, and its adapter and rate move a small base little.
# These values gained with a small base and a hundred queries (ADR 0081).
RTRIEVER_PRESETS = {
    "small": replace(
        RTRIEVER, preset="small", epochs=10.0, batch=16, learning_rate=3e-5, warmup_ratio=0.1, max_length=128,
        lora_rank=0, temperature=0.05, mask_false_negatives=True, hard_negatives=False,
    ),
    "paper": RTRIEVER,
    "safe": replace(RTRIEVER, preset="safe", mask_false_negatives=True),
    "tiny": replace(
        RTRIEVER, preset="tiny", epochs=20.0, batch=16, learning_rate=3e-3, max_length=128, token_budget=4096,
        mask_false_negatives=True,
    ),
}  # fmt: skip
RECIPES: Mapping[str, RecipeEntry] = {
    "prism": RecipeEntry("training.trainers.prism.PrismRecipe", PRISM_PRESETS, ("hybrid",)),
    "prism-extend": RecipeEntry("training.distillation.extend.PrismExtend", EXTEND_PRESETS, ("hybrid",)),
    "ablation": RecipeEntry(
        "training.distillation.ablation.LossAblation",
        ABLATION_PRESETS,
        ("point", "list", "point+list", "point+list+rank"),
    ),
    "cross-encoder": RecipeEntry(
        "training.trainers.cross_encoder.CrossEncoderRecipe", CROSS_ENCODER_PRESETS, ("bce", "mse", "lambda"), "encoder"
    ),
    "erank-sft": RecipeEntry(
        "training.erank.sft.ErankSft",
        ERANK_SFT_PRESETS,
        ("cross-entropy",),
        format="erank-sft",
        reader="training.recipes.erank_data.read_erank_set",
    ),
    "erank-grpo": RecipeEntry(
        "training.erank.grpo.ErankGrpo",
        ERANK_GRPO_PRESETS,
        ("grpo",),
        format="erank-sft",
        reader="training.recipes.erank_data.read_erank_set",
    ),
    "rtriever": RecipeEntry(
        "training.trainers.rtriever.RTriever",
        RTRIEVER_PRESETS,
        ("contrastive",),
        base="embedder",
        format="rtriever",
        reader="training.recipes.bundles.read_rtriever_set",
    ),
}
TABLE = {name: entry.presets for name, entry in RECIPES.items()}  # Recipe -> preset -> defaults.
LOSSES = {name: entry.losses for name, entry in RECIPES.items()}

PACKED = ("prism", "prism-extend")  # Recipes whose rows may share a sequence.

CHOICES = {
    "schedule": ("cosine", "constant"),
    "sft_reduction": ("sum", "mean"),
    "prompt": ("quorum", "prism", "prism-paper", "qwen3-reranker"),
    "precision": ("auto", "fp32", "bf16"),
    "publish_precision": ("fp32", "fp16", "bf16"),
    "attention": ("auto", "eager", "sdpa", "flash_attention_2"),
    "tracking": ("none", "wandb", "mlflow"),
}


def recipe_options(recipe: str, option_values: Mapping[str, Any]) -> RecipeOptions:
    """Return the preset's defaults, overridden by the given values. Raises BadInput for unknown names and values."""
    if recipe not in TABLE:
        raise RefusedTraining(
            _("No recipe named %(recipe)r; there are %(known)s"), recipe=recipe, known=", ".join(TABLE)
        )
    preset = option_values.get("preset") or next(iter(TABLE[recipe]))
    if preset not in TABLE[recipe]:
        message = _("Recipe %(recipe)s has no preset %(preset)r; there are %(known)s")
        raise RefusedTraining(message, recipe=recipe, preset=preset, known=", ".join(TABLE[recipe]))
    option_names = {field.name for field in fields(TABLE[recipe][preset])}
    if unknown := sorted(set(option_values) - option_names):
        message = _("No option named %(option)r; there are %(known)s")
        raise RefusedTraining(message, option=unknown[0], known=", ".join(sorted(option_names)))
    check_kinds(option_values)
    values = {name: value for name, value in option_values.items() if value is not None}
    options = replace(TABLE[recipe][preset], **values)
    _check_options(recipe, options)
    return options


def find_far_rate(recipe: str, options: RecipeOptions) -> dict[str, Any] | None:
    """Return the values of FAR_RATE for a learning rate far above the preset's, or None."""
    usual = TABLE[recipe][options.preset].learning_rate
    if options.learning_rate < FAR_ABOVE * usual:
        return None
    rates = {"rate": f"{options.learning_rate:g}", "usual": f"{usual:g}", "preset": options.preset}
    return rates | {"times": f"{options.learning_rate / usual:.3g}"}


def is_embedding_recipe(recipe: str) -> bool:
    """Return whether a recipe trains embedding models; False for unknown recipes."""
    return recipe in RECIPES and RECIPES[recipe].base == "embedder"


@cache
def kind_of_option(name: str) -> type:
    """Return the type of an option's value, bool, int, float or str, without a None that leaves it to the recipe."""
    kinds = {type(preset) for presets in TABLE.values() for preset in presets.values()}
    hint = next(hints[name] for kind in kinds if name in (hints := get_type_hints(kind)))
    return next(kind for kind in (bool, int, float, str) if kind is hint or kind in get_args(hint))


def check_kinds(option_values: Mapping[str, Any]) -> None:
    """Raise BadInput for values of the wrong type, as a configuration file may contain them."""
    messages = {
        bool: _("%(option)s must be true or false, not %(value)r"),
        int: _("%(option)s must be a whole number, not %(value)r"),
        float: _("%(option)s must be a number, not %(value)r"),
        str: _("%(option)s must be a text, not %(value)r"),
    }
    for name, value in option_values.items():
        kind = kind_of_option(name)
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if value is not None and (not fits or (isinstance(value, bool) and kind is not bool)):
            raise RefusedTraining(messages[kind], option=name, value=value)


def _check_choices(options: RecipeOptions, choices: Mapping[str, tuple[str, ...]]) -> None:
    for name, allowed in choices.items():
        if getattr(options, name) not in allowed:
            raise RefusedTraining(UNKNOWN_CHOICE, option=name, allowed=", ".join(allowed), value=getattr(options, name))


def _check_options(recipe: str, options: RecipeOptions) -> None:
    """Raise BadInput for values that no training can use."""
    _check_choices(options, CHOICES | {"loss": LOSSES[recipe]})
    for name in ("batch", "max_length", "token_budget", "processes"):
        if getattr(options, name) < 1:
            raise RefusedTraining(_("%(option)s must be 1 or more"), option=name)
    if not options.learning_rate > 0 or not options.epochs > 0:
        raise RefusedTraining(_("learning_rate and epochs must be above 0"))
    if not 0 < options.dev_share <= 1:
        raise RefusedTraining(_("dev_share must be above 0 and at most 1"))
    if options.warmup_ratio is not None and not 0 <= options.warmup_ratio < 1:
        raise RefusedTraining(_("warmup_ratio must be 0 or more and below 1"))
    if options.max_steps is not None and options.max_steps < 1:
        raise RefusedTraining(_("max_steps must be 1 or more"))
    if isinstance(options, PrismOptions) and not 0 <= options.sft_share <= 1:
        raise RefusedTraining(_("sft_share must be from 0 to 1"))
    if options.packing and recipe not in PACKED:
        raise RefusedTraining(_("Recipe %(recipe)s packs no rows: leave packing off"), recipe=recipe)
    if isinstance(options, GrpoOptions):
        _check_choices(options, {"reward": ("rr", "ndcg", "se"), "grpo_reduction": ("rollout", "token")})
        if options.group < 2:
            raise RefusedTraining(_("Group must be 2 or more: an advantage compares the rollouts of one document"))
        if options.mini_batch < 1 or options.batch % options.mini_batch or options.rollouts_every < 1:
            message = _("mini_batch %(mini)s must divide batch %(batch)s; rollouts_every is 1 or more")
            raise RefusedTraining(message, mini=options.mini_batch, batch=options.batch)
        if not 0 < options.clip_ratio < 1 or options.kl_weight < 0 or not options.temperature > 0:
            raise RefusedTraining(_("clip_ratio must be between 0 and 1, kl_weight 0 or more, temperature above 0"))
    if isinstance(options, RetrieverOptions):
        if not options.temperature > 0:
            raise RefusedTraining(_("Temperature must be above 0"))
        if options.pooling not in ("", "mean", "last", "cls"):
            raise RefusedTraining(UNKNOWN_CHOICE, option="pooling", allowed="mean, last, cls", value=options.pooling)
    if isinstance(options, ExtendOptions):
        if options.teacher != "base":
            message = _(
                "Teacher must be base, not %(teacher)r: prism-extend learns its base's own scores. To learn those of a "
                "set, take the recipe prism"
            )
            raise RefusedTraining(message, teacher=options.teacher)
        if options.teacher_prompt not in ("", *CHOICES["prompt"]):
            names = ", ".join(CHOICES["prompt"])
            raise RefusedTraining(UNKNOWN_CHOICE, option="teacher_prompt", allowed=names, value=options.teacher_prompt)
    if isinstance(options, AblationOptions) and (options.negatives < 1 or not options.temperature > 0):
        raise RefusedTraining(_("Negatives must be 1 or more, temperature above 0"))
    if options.token_budget < options.max_length:
        message = _("token_budget %(budget)s is smaller than max_length %(length)s: one row must fit")
        raise RefusedTraining(message, budget=options.token_budget, length=options.max_length)
