"""Writing a model folder, and refusing one that does not score like what was trained."""

import json
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from corpus.errors import BadInput
from training.published.base import generation_ends
from training.published.publication import Record, as_text, model_card, reranker_json, sentence_transformers_files

# Greatest difference of a raw margin between what was trained and the model that was written, by
# the number format of its files: a weight keeps 24, 11 or 8 bits. Both are scored in fp32.
TOLERANCES = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 2e-1}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SHARD = "4GB"


class MergeDiffers(BadInput):
    """The written model does not score as the trained one did: publishing is refused, and nothing is left of it."""


def check_merge(expected: Sequence[float], found: Sequence[float], precision: str = "fp32") -> float:
    """Return the greatest difference of two models' margins. Raises MergeDiffers above the tolerance, or for NaN."""
    difference, tolerance = greatest_difference(expected, found), TOLERANCES[precision]
    # Written with `not`, so that NaN is refused as well.
    if not difference <= tolerance:
        raise MergeDiffers(
            f"The written model's scores differ from the trained one's by {difference:.2e} "
            f"(more than {tolerance:.0e} in {precision}) on {len(expected)} pairs: nothing was published"
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
        # Without these in the folder others would generate past the end.
        do_sample=False,
        eos_token_id=generation_ends(model, tokenizer),
        pad_token_id=tokenizer.pad_token_id,
    )
    tokenizer.chat_template = template
    save_model(folder, model, tokenizer, max_length)


def save_model(folder: Path, model: Any, tokenizer: Any, max_length: int) -> None:
    """Write config.json, the weights (several files if large), the tokenizer's files."""
    # The path on this machine is nobody else's business.
    model.config.name_or_path = ""
    tokenizer.model_max_length = max_length
    # A limit that training set on the tokenizer itself would cut documents at load without a word.
    if getattr(tokenizer, "is_fast", False):
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    model.save_pretrained(folder, max_shard_size=SHARD)
    tokenizer.save_pretrained(folder)


def copy_adapter(adapter: Path, folder: Path) -> None:
    """Copy an adapter to `adapter/` of a model folder."""
    (folder / "adapter").mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(adapter / name, folder / "adapter" / name)


def convert_weights(folder: Path, precision: str) -> None:
    """Write the weights of a model folder again in another number format, file by file."""
    if precision == "fp32":
        return
    dtype, total = DTYPES[precision], 0
    for path in sorted(folder.glob("*.safetensors")):
        kept = load_file(path)
        # Integer tensors keep their type: they are indices.
        found = {name: value.to(dtype) if value.is_floating_point() else value for name, value in kept.items()}
        total += sum(value.nbytes for value in found.values())
        save_file(found, path, metadata={"format": "pt"})
    for name, changes in (
        ("config.json", {"dtype": str(dtype).removeprefix("torch.")}),
        ("model.safetensors.index.json", {"metadata": {"total_size": total}}),
    ):
        if (path := folder / name).exists():
            path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2) + "\n")


def annotate_folder(folder: Path, record: Record, *, name: str) -> None:
    """Write reranker.json, README.md and sentence-transformers' files beside the rest."""
    versions = {
        "pytorch": torch.__version__,
        "sentence_transformers": version("sentence-transformers"),
        "transformers": transformers.__version__,
    }
    files = {}
    # CrossEncoder reads a score from one position: erank writes an answer; an embedder's files are the library's own.
    if record.kind in ("causal", "encoder"):
        files = sentence_transformers_files(record.kind, record.yes_id, record.no_id, versions)
    files["reranker.json"] = as_text(reranker_json(record))
    files["README.md"] = model_card(record, name)
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
