"""Base models of causal rerankers: finding, checking and loading them."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

from corpus.errors import BadInput
from training.published.tiny_bases import TINY, tiny_base, tiny_encoder
from training.recipes import rendering

logger = logging.getLogger(__name__)


def find_base(name: str, tiny_folder: Path) -> Path:
    """Return the folder of a base: a tiny one written below `tiny_folder`, a path, or one in the hub's local cache.

    Nothing is downloaded. Raises BadInput.
    """
    if name in TINY:
        folder = tiny_folder / name.replace(":", "-")
        # Written once for a job, whose processes and later attempts share it.
        if (folder / "config.json").exists():
            return folder
        return tiny_encoder(folder) if name == "tiny:encoder" else tiny_base(folder, shape=name.removeprefix("tiny:"))
    path = Path(name)
    if path.is_absolute() and path.is_dir():
        if not (path / "config.json").exists():
            raise BadInput(f"{path.name} has no config.json: name the folder of a model")
        return path
    if name.count("/") != 1 or name.startswith(("/", ".")):
        raise BadInput(f"{name} is no folder, no hub id (owner/name), and none of {', '.join(TINY)}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, OSError, ValueError):
        cache = os.environ.get("HF_HOME") or "~/.cache/huggingface"
        raise BadInput(
            f"{name} is not in the local cache of the hub ({cache}): fetch it there first, nothing is downloaded here"
        ) from None


def check_causal(folder: Path) -> Any:
    """Return the configuration of a causal base. Raises BadInput for encoders and unknown models."""
    try:
        config = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{folder.name} is no model that transformers can read: {' '.join(str(error).split())[:200]}"
        ) from None
    # Some configurations name no architecture.
    names = list(getattr(config, "architectures", None) or [])
    # BERT and others also have a causal form, so the architecture in the file decides.
    causal = any(name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in names)
    if getattr(config, "is_encoder_decoder", False):
        raise BadInput(f"{folder.name} ({config.model_type}) is an encoder with a decoder: name a decoder alone")
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not causal:
        raise BadInput(
            f"{folder.name} ({config.model_type}) is an encoder, which writes no answers: take the recipe cross-encoder"
        )
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise BadInput(f"{folder.name} ({config.model_type}) has no form in transformers that writes text")
    # Embedding models are decoders saved without their output layer, which does no harm if it is tied to the input.
    if names and not causal and not config.get_text_config().tie_word_embeddings:
        raise BadInput(
            f"{folder.name} ({names[0]}) is a decoder without the layer that gives words: name the model that it was "
            "made of (...ForCausalLM)"
        )
    return config


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer, with a padding token."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def answer_ids(tokenizer: Any) -> tuple[int, int]:
    """Return the ids of "yes" and "no". Raises BadInput unless each is one token."""
    answers = []
    for word in (rendering.YES, rendering.NO):
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        # The margin compares two logits, so each answer must be one token.
        if len(ids) != 1:
            raise BadInput(f"The tokenizer cuts {word!r} into {len(ids)} tokens, it must be one: take another base")
        answers.append(int(ids[0]))
    return answers[0], answers[1]


def check_end_token(tokenizer: Any) -> int:
    """Return the id of the token that ends an answer. Raises BadInput for a base without it.

    The `*-Base` models of Qwen3 end their texts with another token; a trained model may end its text with either.
    """
    ids = tokenizer(rendering.END, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise BadInput(
            f"The tokenizer has no token {rendering.END}, which ends an answer: take a base that knows it, as Qwen's do"
        )
    return int(ids[0])


def generation_ends(model: Any, tokenizer: Any) -> list[int]:
    """Return the ids of tokens that end a model's text: the model's, the tokenizer's, and that of our answers."""
    model_ends = getattr(model.generation_config, "eos_token_id", None)
    ends = [*(model_ends if isinstance(model_ends, list) else [model_ends]), tokenizer.eos_token_id]
    answer_end = tokenizer(rendering.END, add_special_tokens=False)["input_ids"]
    ends += answer_end if len(answer_end) == 1 else []
    return sorted({int(end) for end in ends if end is not None})


def longest_prompt(tokenizer: Any, config: Any) -> int:
    """Return the maximum input of a model in tokens: the smaller of its tokenizer's limit and its positions."""
    # `model_max_length` is a huge number if the tokenizer's files have no limit.
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(min(tokenizer.model_max_length, positions or tokenizer.model_max_length))


def choose_precision(precision: str, device: str) -> str:
    """Return the number format of scoring; auto is fp32 on a CPU, bf16 on a GPU. Raises BadInput for tf32 on a CPU."""
    if precision == "auto":
        return "fp32" if device == "cpu" else "bf16"
    if precision == "tf32" and device == "cpu":
        raise BadInput("tf32 is a way of GPUs to multiply: take fp32 or bf16 on a CPU")
    return precision


def dtype_of(precision: str) -> torch.dtype:
    """Return the number format of the weights, and set whether a GPU multiplies fp32 as TF32."""
    # The setting is global in torch, so it is set on every load.
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return torch.bfloat16 if precision == "bf16" else torch.float32


def load_model(folder: Path, device: str, dtype: torch.dtype, attention: str = "auto") -> Any:
    """Load the model for training, on its device. Raises BadInput for an attention that is not available here."""
    implementation = {} if attention == "auto" else {"attn_implementation": attention}
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **implementation)
    except (ImportError, ValueError) as error:
        if not implementation:
            raise
        raise BadInput(f"Attention {attention}: {' '.join(str(error).split())[:300]}") from None
    # A cache of keys would take memory, and training does not use it.
    model.config.use_cache = False
    warn_of_slow_path(model.config, device)
    return model.to(device)


def missing_fast_path(config: Any) -> list[str]:
    """Return the missing packages without which a model's linear attention is slow."""
    if "linear_attention" not in (getattr(config.get_text_config(), "layer_types", None) or []):
        return []
    packages = {"fla": "flash-linear-attention", "causal_conv1d": "causal-conv1d"}
    return [package for module, package in packages.items() if find_spec(module) is None]


def warn_of_slow_path(config: Any, device: str) -> None:
    """Log the packages missing for a model's fast path on a GPU, since nothing else explains why it is slow."""
    if device != "cpu" and (missing := missing_fast_path(config)):
        logger.warning(
            "%s's linear attention runs in plain torch, many times slower: %s missing (requirements-gpu.txt)",
            config.model_type,
            " and ".join(missing),
        )


def is_tiny(folder: Path) -> bool:
    """Return whether a base is one of the tiny models for demonstrations (`tiny_bases`)."""
    return bool(json.loads((folder / "config.json").read_text()).get("quorum_tiny", False))


@contextmanager
def measuring(model: Any) -> Iterator[None]:
    """Set a model to evaluation mode, without dropout, for the duration of the context."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
