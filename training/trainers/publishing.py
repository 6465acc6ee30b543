"""Writing a model folder, and refusing one that does not score like what was trained (FORMATS, SPEC S9)."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from corpus.errors import BadInput
from training.serving.publication import (
    Record,
    as_text,
    model_card,
    reranker_json,
    sentence_transformers_files,
)
from training.trainers.base import generation_ends

# Greatest difference of a raw fp32 margin between the adapter and the merged model on the fixture.
TOLERANCE = 1e-4


class MergeDiffers(BadInput):
    """The written model does not score as the trained one did: publishing is refused, and nothing is left of it."""


def check_merge(expected: Sequence[float], found: Sequence[float]) -> float:
    """Return the greatest difference of two models' margins. Raises MergeDiffers above TOLERANCE, or for NaN."""
    difference = greatest_difference(expected, found)
    if not difference <= TOLERANCE:
        raise MergeDiffers(
            f"the written model's scores differ from the trained one's by {difference:.2e} "
            f"(more than {TOLERANCE:.0e}) on {len(expected)} pairs: nothing was published"
        )
    return difference


def greatest_difference(expected: Sequence[float], found: Sequence[float]) -> float:
    """Return max |a - b|; not a number, or another count of rows, is infinitely far."""
    if len(expected) != len(found):
        return float("inf")
    differences = np.abs(np.subtract(expected, found))
    return float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0))


def write_causal(folder: Path, model: Any, tokenizer: Any, *, template: str, max_length: int) -> None:
    """Write a merged fp32 model: config, weights, generation config, tokenizer files and chat_template.jinja."""
    config = model.config
    # Qwen3.5's heads of multi-token prediction are not in the folder: a loader that reads of some would look for them.
    if hasattr(config, "mtp_num_hidden_layers") or str(config.model_type).startswith("qwen3_5"):
        config.mtp_num_hidden_layers = 0
    config.use_cache = True
    model.generation_config = transformers.GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, eos_token_id=generation_ends(model, tokenizer), pad_token_id=tokenizer.pad_token_id
    )
    tokenizer.chat_template = template
    save_model(folder, model, tokenizer, max_length)


def save_model(folder: Path, model: Any, tokenizer: Any, max_length: int) -> None:
    """Write config.json, model.safetensors and the files of the tokenizer."""
    model.config.name_or_path = ""
    tokenizer.model_max_length = max_length
    # A limit that training set on the tokenizer itself would cut documents at load without a word.
    if getattr(tokenizer, "is_fast", False):
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    model.save_pretrained(folder, max_shard_size="1TB")
    tokenizer.save_pretrained(folder)


def annotate_folder(folder: Path, record: Record, *, name: str) -> None:
    """Write reranker.json, README.md and the files of sentence-transformers beside what transformers wrote."""
    versions = {
        "pytorch": torch.__version__,
        "sentence_transformers": version("sentence-transformers"),
        "transformers": transformers.__version__,
    }
    files = sentence_transformers_files(record.kind, record.yes_id, record.no_id, versions)
    files["reranker.json"] = as_text(reranker_json(record))
    files["README.md"] = model_card(record, name)
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
