"""The descriptions in a published model's folder: reranker.json, sentence-transformers' files, the card (pure).

None of them contains a path of this machine or a time.
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
# The rows of the card's table: measures of training/recipes/metrics.py on the dev split.
MEASURES = {
    "label_pearson": "Pearson with the labels",
    "teacher_pearson": "Pearson with the teacher",
    "auc": "AUC",
    "accuracy": "accuracy at 0.5",
    "accuracy_at_threshold": "accuracy at the chosen threshold",
    "ndcg@10": "nDCG@10",
}
# Number formats that are shown with figures; fp32 is not.
PRECISIONS = {"tf32": "TF32", "bf16": "bf16"}
# Names of model folders that do not say which model they contain.
NAMELESS = re.compile(r"models?|(final|merged|trained|best)([-_]?model)?|out|output|checkpoint-\d+", re.IGNORECASE)
NUMBERED = re.compile(r"[0-9a-f]{32}")  # The folder of a model that a page or a program trained.
RANDOM_HEAD = "random head"  # The heading of a base that had no scoring head, and is no baseline.
# Placeholders for query, document and instruction, with NULs, which no text contains.
MARK = ("\x00q\x00", "\x00d\x00", "\x00i\x00")


@dataclass(frozen=True)
class Record:
    """The record of a published model.

    `evaluation`: measures of "base", "adapter" (or None) and "merged"; `gain`: the result of
    training.jobs.significance.compare_models; `fixture`: a few rows (query, document, instruction, margin) for checking
    the folder later.
    """

    kind: Kind
    recipe: str
    base: str
    options: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    calibration: Calibration
    base_source: str = ""  # Where the base's name comes from: its id, its folder or its model card.
    dataset: str = ""
    dataset_sha256: str = ""
    synthetic_queries: int = 0  # The number in the training data's manifest.
    teacher: str = "none"
    prompt: str = ""
    prompt_sha256: str = ""
    # If the base itself was the teacher, its prompt; `prompt` is the student's.
    teacher_prompt: str = ""
    teacher_prompt_sha256: str = ""
    yes_id: int | None = None
    no_id: int | None = None
    max_length: int | None = None
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    gain: Mapping[str, Any] = field(default_factory=dict)
    # The result of FirstStage.compare without its `per_query`.
    rankings: Mapping[str, Any] = field(default_factory=dict)
    # The nDCG@10 of base and model for each held-out dev query, for comparisons of models with the same dev split.
    per_query: Mapping[str, Any] = field(default_factory=dict)
    fixture: Sequence[Mapping[str, Any]] = ()
    merge_difference: float | None = None
    tiny: bool = False
    device: str = "cpu"
    steps: int = 0
    embedder: Mapping[str, Any] = field(default_factory=dict)  # Dimensions, pooling, query prefix, temperature.
    row_lengths: Mapping[str, Any] = field(default_factory=dict)  # metrics.summarize_lengths of the training split.
    # For kind erank: the format of its answers, and the maximum lengths of prompt and answer in tokens.
    answer: str = ""
    max_prompt: int | None = None
    max_response: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)  # Counts of the recipe, such as dropped rows.

    @property
    def setup_label(self) -> str:
        return describe_setup(self.tiny, self.device)

    @property
    def sft_reduction(self) -> str | None:
        """The reduction over the target's tokens, sum or mean; None for encoders, which write no text."""
        reduction = self.options.get("sft_reduction") if self.kind in ("causal", "erank") else None
        return str(reduction) if reduction else None


def describe_setup(tiny: bool, device: str, precision: str = "fp32") -> str:
    """Return the label of a setup for a model's figures, such as "tiny model, CPU"; "" for fp32 on a GPU."""
    words = ["tiny model"] if tiny else []
    words += ["CPU"] if device == "cpu" else []
    words += [PRECISIONS[precision]] if precision in PRECISIONS else []
    return ", ".join(words)


def base_name(base: str) -> str:
    """Return the `owner/name` of a hub id, or the last part of a path that names a model.

    Other readers do not know this machine's paths, and a folder called `model` names none.
    """
    parts = [part for part in base.replace("\\", "/").split("/") if part]
    if len(parts) == 2 and not base.startswith(("/", ".", "~")):
        return "/".join(parts)
    # A folder in the hub's cache: models--owner--name/snapshots/COMMIT.
    if cache_name := next((part for part in parts if part.startswith("models--")), ""):
        return cache_name.removeprefix("models--").replace("--", "/")
    return next((part for part in reversed(parts) if not NAMELESS.fullmatch(part)), parts[-1] if parts else "unknown")


def name_base(base: str, folder: Path) -> tuple[str, str]:
    """Return a base's name for readers elsewhere, and where the name comes from; `folder` is where the base lies.

    Where the folder's own name says nothing ("model"), the first heading of its model card names it. Its configuration
    is not asked: `_name_or_path` there is the model that the base itself was made of.
    """
    own_name = Path(base).name
    if not (NAMELESS.fullmatch(own_name) or NUMBERED.fullmatch(own_name)):
        return base_name(base), "its folder" if Path(base).is_absolute() else "its id"
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.exists() else ""
    if heading := re.search(r"^# +(\S.{0,98}\S)\s*$", text, re.MULTILINE):
        return heading[1], "its model card"
    return base_name(base), "the folder that it lies in"


def model_title(folder: str, record: Record) -> str:
    """Return the title of a model's card: its folder's name, or base and recipe if that is a random name."""
    if not NUMBERED.fullmatch(folder):
        return folder
    return f"{base_name(record.base).replace('/', '-').replace(':', '-')}-{record.recipe}"


def reranker_json(record: Record) -> dict[str, Any]:
    """Return the content of reranker.json, which a scorer checks when it loads the model."""
    return {"version": 1, **asdict(record)} | {
        "base": base_name(record.base),
        "sft_reduction": record.sft_reduction,
        "threshold": record.calibration.threshold,
        "threshold_margin": record.calibration.threshold_margin,
        "words": record.setup_label,
    }


def chat_template(render: Callable[[str, str, str], str]) -> str:
    """Return a Jinja template whose output equals render(query, document, instruction) byte for byte.

    It reads the messages that CrossEncoder makes from a pair and its `prompt`, with the roles `query`, `document`, and
    `system` for the instruction. `render` must insert each of the three exactly once, unchanged.
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
    """Return a template of a rendered prompt, with an expression for each mark and a literal for the text between."""
    roles = dict(zip(MARK, ("query", "document", "system"), strict=True))
    for mark in marks:
        if text.count(mark) not in ((0, 1) if mark == MARK[2] else (1,)):
            raise ValueError(f"the prompt must contain its {roles[mark]} exactly once")
    template = ""
    for piece in filter(None, re.split(f"({'|'.join(marks)})", text)):
        if piece in roles:
            content = f'selectattr("role", "eq", "{roles[piece]}") | map(attribute="content") | first'
            template += f"{{{{- messages | {content} -}}}}"
        else:
            # Jinja reads escapes as Python does, so a JSON string is a valid literal.
            template += f"{{{{- {json.dumps(piece, ensure_ascii=False)} -}}}}"
    return template


def sentence_transformers_files(
    kind: Kind, yes_id: int | None, no_id: int | None, versions: Mapping[str, str]
) -> dict[str, str]:
    """Return the files that CrossEncoder reads in addition to those of transformers: their texts by path."""
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
    """Return a value as JSON, in the format of all files in the folder."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def model_card(record: Record, name: str) -> str:
    """Return the model card, README.md: front matter for the hub, a description, measures, and how to use it."""
    from jinja2 import Environment, StrictUndefined

    jinja = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    embedder = record.kind == "embedder"
    tags = ["sentence-similarity", "feature-extraction"] if embedder else ["reranker", "cross-encoder", "text-ranking"]
    tags += ["quorum", record.recipe, *(["tiny"] if record.tiny else [])]
    random_head = bool(record.gain.get("random_head"))
    sides = [side for side in ("base", "adapter", "merged") if record.evaluation.get(side)]
    names = {"base": f"base ({RANDOM_HEAD})" if random_head else "base", "tuned": "this model"}
    # The similarity of vectors has no threshold, so no accuracy.
    measures = {key: title for key, title in MEASURES.items() if not (embedder and key.startswith("accuracy"))}
    return jinja.from_string(CARD.read_text(encoding="utf-8")).render(
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
            "base": f"{base_name(record.base)}, named by {record.base_source}" if record.base_source else None,
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
