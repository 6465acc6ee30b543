"""Writing of a model folder, and the check that it scores like the trained model."""

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

# The greatest allowed difference between the raw margins of the trained and the written model, both scored in fp32, by
# the number format of the files, whose weights have 24, 11 or 8 significant bits.
TOLERANCES = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 2e-1}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SHARD = "4GB"


class MergeDiffers(BadInput):
    """The written model does not score like the trained one, so it is not published."""


def check_merge(expected: Sequence[float], published: Sequence[float], precision: str = "fp32") -> float:
    """Return the greatest difference of two models' margins. Raises MergeDiffers above the tolerance, or for NaN."""
    difference, tolerance = greatest_difference(expected, published), TOLERANCES[precision]
    # With `not`, so that NaN is refused, too.
    if not difference <= tolerance:
        raise MergeDiffers(
            f"The written model's scores differ from the trained one's by {difference:.2e} "
            f"(more than {tolerance:.0e} in {precision}) on {len(expected)} pairs: nothing was published"
        )
    return difference


def greatest_difference(expected: Sequence[float], published: Sequence[float]) -> float:
    """Return max |a - b|, which is infinite for NaN and for different numbers of rows."""
    if len(expected) != len(published):
        return float("inf")
    differences = np.abs(np.subtract(expected, published))
    return float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0))


def write_causal(folder: Path, model: Any, tokenizer: Any, *, template: str, max_length: int) -> None:
    """Write a merged fp32 model: configuration, weights, generation configuration, tokenizer and chat template."""
    config = model.config
    # Qwen3.5's heads for multi-token prediction are not written, so loaders must not look for them.
    if hasattr(config, "mtp_num_hidden_layers") or str(config.model_type).startswith("qwen3_5"):
        config.mtp_num_hidden_layers = 0
    config.use_cache = True
    model.generation_config = transformers.GenerationConfig(  # type: ignore[no-untyped-call]
        # Without these, other programs would generate text after the end.
        do_sample=False,
        eos_token_id=generation_ends(model, tokenizer),
        pad_token_id=tokenizer.pad_token_id,
    )
    tokenizer.chat_template = template
    save_model(folder, model, tokenizer, max_length)


def save_model(folder: Path, model: Any, tokenizer: Any, max_length: int) -> None:
    """Write config.json, the weights (in several files if large) and the tokenizer's files."""
    # Not the path on this machine.
    model.config.name_or_path = ""
    tokenizer.model_max_length = max_length
    # A limit set on the tokenizer in training would be published, and cut documents silently.
    if getattr(tokenizer, "is_fast", False):
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    model.save_pretrained(folder, max_shard_size=SHARD)
    tokenizer.save_pretrained(folder)


def copy_adapter(adapter: Path, folder: Path) -> None:
    """Copy an adapter into `adapter/` in a model folder."""
    (folder / "adapter").mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(adapter / name, folder / "adapter" / name)


def convert_weights(folder: Path, precision: str) -> None:
    """Convert the weights of a model folder to another number format, file by file."""
    if precision == "fp32":
        return
    dtype, total = DTYPES[precision], 0
    for path in sorted(folder.glob("*.safetensors")):
        # Integer tensors are indices, and keep their type.
        tensors = {
            name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in load_file(path).items()
        }
        total += sum(tensor.nbytes for tensor in tensors.values())
        save_file(tensors, path, metadata={"format": "pt"})
    for name, changes in (
        ("config.json", {"dtype": str(dtype).removeprefix("torch.")}),
        ("model.safetensors.index.json", {"metadata": {"total_size": total}}),
    ):
        if (path := folder / name).exists():
            path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2) + "\n")


def annotate_folder(folder: Path, record: Record, *, name: str) -> None:
    """Add reranker.json, README.md and the files of sentence-transformers to a model folder."""
    versions = {
        "pytorch": torch.__version__,
        "sentence_transformers": version("sentence-transformers"),
        "transformers": transformers.__version__,
    }
    files = {}
    # CrossEncoder cannot read the written scores of an erank model, and the library wrote an embedder's files itself.
    if record.kind in ("causal", "encoder"):
        files = sentence_transformers_files(record.kind, record.yes_id, record.no_id, versions)
    files["reranker.json"] = as_text(reranker_json(record))
    files["README.md"] = model_card(record, name)
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
