"""Descriptions in a published model's folder: reranker.json, the files of sentence-transformers, the card (pure).

FORMATS "model folder". No path of this machine and no time goes into any of them.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from training.recipes.calibration import Calibration

Kind = Literal["causal", "encoder", "erank", "embedder"]
CARD = Path(__file__).with_name("model_card.md.jinja")
# The card's rows: measures of training/recipes/metrics.py on the dev split.
MEASURES = {
    "label_pearson": "Pearson with the labels",
    "teacher_pearson": "Pearson with the teacher",
    "auc": "AUC",
    "accuracy": "accuracy at 0.5",
    "accuracy_at_threshold": "accuracy at the chosen threshold",
    "ndcg@10": "nDCG@10",
}
# Number formats that are said beside figures; fp32 is not.
PRECISIONS = {"tf32": "TF32", "bf16": "bf16"}
# What folders are called that hold a model and do not say which.
NAMELESS = re.compile(r"models?|(final|merged|trained|best)([-_]?model)?|out|output|checkpoint-\d+", re.IGNORECASE)
RANDOM_HEAD = "random head"  # What a base is called that had no head to score with: no yardstick.
# No text holds a NUL, so these marks are found in a rendered prompt where the texts went.
MARK = ("\x00q\x00", "\x00d\x00", "\x00i\x00")


@dataclass(frozen=True)
class Record:
    """Record of one published model.

    evaluation: {"base": measures, "adapter": measures or null, "merged": measures}; gain: as
    compare_models gives it (training/jobs/significance.py); fixture: a few rows {query, document,
    instruction, margin} for checking the folder later.
    """

    kind: Kind
    recipe: str
    base: str
    options: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    calibration: Calibration
    dataset: str = ""
    dataset_sha256: str = ""
    synthetic_queries: int = 0  # Of the training data, as its manifest counts them.
    teacher: str = "none"
    prompt: str = ""
    prompt_sha256: str = ""
    # How the teacher was asked, where the base itself was it; `prompt` is then the student's.
    teacher_prompt: str = ""
    teacher_prompt_sha256: str = ""
    yes_id: int | None = None
    no_id: int | None = None
    max_length: int | None = None
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    gain: Mapping[str, Any] = field(default_factory=dict)
    # First stage, base and model over the documents of the first stage: first_stage.compare without its `per_query`.
    rankings: Mapping[str, Any] = field(default_factory=dict)
    # nDCG@10 of base and model for each dev query kept apart, so that models of one dev split can be compared.
    per_query: Mapping[str, Any] = field(default_factory=dict)
    fixture: Sequence[Mapping[str, Any]] = ()
    merge_difference: float | None = None
    tiny: bool = False
    device: str = "cpu"
    steps: int = 0
    embedder: Mapping[str, Any] = field(default_factory=dict)  # dimensions, pooling, query prefix, temperature
    row_lengths: Mapping[str, Any] = field(default_factory=dict)  # Of the training split: metrics.summarize_lengths.
    # Of kind erank: the form of its answers, and how long prompt and answer are at most.
    answer: str = ""
    max_prompt: int | None = None
    max_response: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)  # What the recipe counted, such as rows that it dropped.

    @property
    def setup_label(self) -> str:
        return describe_setup(self.tiny, self.device)

    @property
    def sft_reduction(self) -> str | None:
        """Sum or mean over the target's tokens; None for encoders, which write no text."""
        found = self.options.get("sft_reduction") if self.kind in ("causal", "erank") else None
        return str(found) if found else None


def describe_setup(tiny: bool, device: str, precision: str = "fp32") -> str:
    """Return what must stand beside every figure of a model, such as "tiny model, CPU"; "" for fp32 on a GPU."""
    words = ["tiny model"] if tiny else []
    words += ["CPU"] if device == "cpu" else []
    words += [PRECISIONS[precision]] if precision in PRECISIONS else []
    return ", ".join(words)


def base_name(base: str) -> str:
    """Return `owner/name` of a hub, or the last part of a folder that says which model it is.

    A path of this machine tells readers nothing, and neither does a folder that is called `model`.
    """
    parts = [part for part in base.replace("\\", "/").split("/") if part]
    if len(parts) == 2 and not base.startswith(("/", ".", "~")):
        return "/".join(parts)
    # As the hub's cache keeps it: models--owner--name/snapshots/COMMIT.
    if cached := next((part for part in parts if part.startswith("models--")), ""):
        return cached.removeprefix("models--").replace("--", "/")
    return next((part for part in reversed(parts) if not NAMELESS.fullmatch(part)), parts[-1] if parts else "unknown")


def model_title(folder: str, record: Record) -> str:
    """Return the model's name on its card: its folder's, or base and recipe."""
    plain = bool(re.fullmatch(r"[0-9a-f]{32}", folder))
    return f"{base_name(record.base).replace('/', '-').replace(':', '-')}-{record.recipe}" if plain else folder


def reranker_json(record: Record) -> dict[str, Any]:
    """Return the content of reranker.json, which the scorer checks at load."""
    return {"version": 1, **asdict(record)} | {
        "base": base_name(record.base),
        "sft_reduction": record.sft_reduction,
        "threshold": record.calibration.threshold,
        "threshold_margin": record.calibration.threshold_margin,
        "words": record.setup_label,
    }


def chat_template(render: Callable[[str, str, str], str]) -> str:
    """Return a Jinja template that gives render(query, document, instruction) byte for byte.

    It reads messages of the roles `query` and `document`, and `system` for the instruction: what
    CrossEncoder makes of a pair and of its `prompt`. `render` must put each of the three into its
    text once, unchanged.
    """
    with_instruction = _template_pieces(render(*MARK), MARK)
    without = _template_pieces(render(MARK[0], MARK[1], ""), MARK[:2])
    if with_instruction == without:
        return without
    return (
        '{%- if messages[0]["role"] == "system" and messages[0]["content"] -%}'
        f"{with_instruction}{{%- else -%}}{without}{{%- endif -%}}"
    )


def _template_pieces(text: str, marks: Sequence[str]) -> str:
    names = dict(zip(MARK, ("query", "document", "system"), strict=True))
    for mark in marks:
        if text.count(mark) not in ((0, 1) if mark == MARK[2] else (1,)):
            raise ValueError(f"the prompt must hold its {names[mark]} exactly once")
    template = ""
    for piece in filter(None, re.split(f"({'|'.join(marks)})", text)):
        if piece in names:
            of_role = f'selectattr("role", "eq", "{names[piece]}") | map(attribute="content") | first'
            template += f"{{{{- messages | {of_role} -}}}}"
        else:
            # Jinja reads escapes as Python does, so json's form of strings is understood.
            template += f"{{{{- {json.dumps(piece, ensure_ascii=False)} -}}}}"
    return template


def sentence_transformers_files(
    kind: Kind, yes_id: int | None, no_id: int | None, versions: Mapping[str, str]
) -> dict[str, str]:
    """Return what CrossEncoder reads beside transformers' files: texts by path in the folder."""
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    ]
    text = {"method": "forward", "method_output_name": "logits"}
    module: dict[str, Any] = {"transformer_task": "sequence-classification", "modality_config": {"text": text}}
    files = {}
    if kind == "causal":
        score = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
        modules.append({"idx": 1, "name": "1", "path": "1_LogitScore", "type": score})
        module["transformer_task"] = "text-generation"
        module["modality_config"]["message"] = {**text, "format": "flat"}
        ids = {"true_token_id": yes_id, "false_token_id": no_id, "module_input_name": "causal_logits"}
        files["1_LogitScore/config.json"] = as_text(ids)
    module["module_output_name"] = "causal_logits" if kind == "causal" else "scores"
    config = {
        "__version__": dict(versions),
        "activation_fn": "torch.nn.modules.activation.Sigmoid",
        "default_prompt_name": None,
        "model_type": "CrossEncoder",
        "prompts": {},
    }
    return files | {
        "modules.json": as_text(modules),
        "config_sentence_transformers.json": as_text(config),
        "sentence_bert_config.json": as_text(module),
    }


def as_text(value: Any) -> str:
    """Return JSON as every file of the folder has it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def model_card(record: Record, name: str) -> str:
    """Return README.md of the folder: front matter for the hub, then what the model is, how good, and its use."""
    from jinja2 import Environment, StrictUndefined

    plain = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    embedder = record.kind == "embedder"
    tags = ["sentence-similarity", "feature-extraction"] if embedder else ["reranker", "cross-encoder", "text-ranking"]
    tags += ["quorum", record.recipe, *(["tiny"] if record.tiny else [])]
    # Vectors have no threshold to be right or wrong at.
    random_head = bool(record.gain.get("random_head"))
    sides = [side for side in ("base", "adapter", "merged") if record.evaluation.get(side)]
    names = {"base": f"base ({RANDOM_HEAD})" if random_head else "base", "tuned": "this model"}
    measures = {key: words for key, words in MEASURES.items() if not (embedder and key.startswith("accuracy"))}
    return plain.from_string(CARD.read_text(encoding="utf-8")).render(
        record=record,
        name=name,
        base=base_name(record.base),
        causal=record.kind == "causal",
        embedder=embedder,
        tags=list(dict.fromkeys(tags)),
        measures=measures,
        sides=sides,
        columns=[RANDOM_HEAD if side == "base" and random_head else side for side in sides],
        ranked=record.rankings,
        names={first: first for first in filter(None, [record.rankings.get("first_stage")])} | names,
        signed=lambda value: f"{value:+.4f}",
        reasons=(record.evaluation.get("merged") or {}).get("reasons", {}),
        fitted=record.calibration,
        provenance={
            "recipe": record.recipe,
            "sft_reduction": record.sft_reduction,
            "teacher": record.teacher,
            "dataset sha256": record.dataset_sha256 or None,
            "synthetic queries in the data (a model wrote them)": record.synthetic_queries or None,
            "prompt sha256": record.prompt_sha256 or None,
            "teacher prompt": record.teacher_prompt_sha256 or None,
            "student prompt": (record.teacher_prompt_sha256 and record.prompt_sha256) or None,
            "steps": record.steps,
            "trained on": record.setup_label or record.device,
            "greatest difference of written and trained margins": record.merge_difference,
        },
        cell=lambda value: "not defined" if value is None else f"{value:.4f}",
        dumps=json.dumps,
    )
