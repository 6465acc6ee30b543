"""Bases of causal rerankers: found on disk or in a local hub cache, checked, or made tiny on demand."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from string import punctuation
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from corpus.bundled.passages import cut_passages
from corpus.errors import BadInput
from training.recipes import rendering
from training.trainers.tiny_encoder import tiny_encoder

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
WHOLE_WORDS = ("yes", "no", "contribution", "evidence")
VOCABULARY = 2048
TINY = ("tiny:qwen3", "tiny:qwen3.5", "tiny:encoder")  # Names of bases that are made on demand.


def find_base(name: str, made: Path) -> Path:
    """The folder of a base: a tiny one (made in `made` when missing), a folder, or a hub id from the local cache.

    Nothing is downloaded. Raises BadInput where it cannot be had.
    """
    if name in TINY:
        folder = made / name.replace(":", "-")
        if (folder / "config.json").exists():
            return folder
        return tiny_encoder(folder) if name == "tiny:encoder" else tiny_base(folder, shape=name.removeprefix("tiny:"))
    path = Path(name)
    if path.is_absolute() and path.is_dir():
        if not (path / "config.json").exists():
            raise BadInput(f"{path} has no config.json: name the folder of a model")
        return path
    if name.count("/") != 1 or name.startswith(("/", ".")):
        raise BadInput(f"{name} is no folder, no hub id (owner/name), and none of {', '.join(TINY)}")
    return _cached_snapshot(name)


def _cached_snapshot(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, OSError, ValueError):
        where = os.environ.get("HF_HOME") or "~/.cache/huggingface"
        raise BadInput(
            f"{name} is not in the local cache of the hub ({where}): fetch it there first, nothing is downloaded here"
        ) from None


def check_causal(folder: Path) -> Any:
    """The config of a base that can write text. Raises BadInput for encoders and what transformers does not know."""
    try:
        config = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{folder.name} is no model that transformers can read: {' '.join(str(error).split())[:200]}"
        ) from None
    names = list(getattr(config, "architectures", None) or [])
    # BERT and others have a causal form as well, so the architecture that the file names decides.
    causal = any(name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in names)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or (names and not causal):
        raise BadInput(
            f"{folder.name} ({config.model_type}) is an encoder, which writes no answers: take the recipe cross-encoder"
        )
    return config


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer, with something to pad with."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def answer_ids(tokenizer: Any) -> tuple[int, int]:
    """The ids of "yes" and "no". Raises BadInput unless each is one token."""
    found = []
    for word in (rendering.YES, rendering.NO):
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        if len(ids) != 1:
            raise BadInput(f"the tokenizer cuts {word!r} into {len(ids)} tokens, it must be one: take another base")
        found.append(int(ids[0]))
    return found[0], found[1]


def load_model(folder: Path, device: str, dtype: torch.dtype) -> Any:
    """The model in training form on its device."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    model.config.use_cache = False
    return model.to(device)


def is_tiny(folder: Path) -> bool:
    """Whether a base was made for demonstrations (`tiny_base`)."""
    return bool(json.loads((folder / "config.json").read_text()).get("quorum_tiny", False))


def tiny_base(folder: Path, *, shape: str = "qwen3", seed: int = 0, hidden: int = 64, layers: int = 2) -> Path:
    """A causal model of Qwen3's or Qwen3.5's shape with seeded random weights, marked "quorum_tiny".

    Its tokenizer is trained on the bundled collection; "yes" and "no" are one token each. Returns the folder.
    """
    tokenizer = _train_tokenizer()
    config = _tiny_config(shape, len(tokenizer), hidden, layers)
    config.quorum_tiny = True
    config.eos_token_id = tokenizer.eos_token_id
    config.pad_token_id = tokenizer.pad_token_id
    # The seed of these weights must not become that of the training which asked for them.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tiny_config(shape: str, vocabulary: int, hidden: int, layers: int) -> Any:
    common: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": hidden // 4,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
    }
    if shape == "qwen3":
        from transformers import Qwen3Config

        return Qwen3Config(**common)
    if shape == "qwen3.5":
        from transformers import Qwen3_5TextConfig

        linear: dict[str, Any] = {
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "layer_types": [*["linear_attention"] * (layers - 1), "full_attention"],
        }
        return Qwen3_5TextConfig(**common, **linear)
    raise BadInput(f"no tiny base of shape {shape!r}; there are {', '.join(TINY)}")


def _train_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level pairs of the bundled passages, so that every text can be written; the same at every run."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_tokenizer_texts(), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=4096
    )


def _tokenizer_texts() -> Iterator[str]:
    """The passages, the prompt, and often enough the words that must be one token each, alone on a line."""
    for passage in cut_passages(topics):
        yield f"{passage.title} {passage.text}"
    yield rendering.prompt_text()
    yield punctuation
    for word in WHOLE_WORDS:
        yield from [word] * 500
