"""Embedding models: folders in sentence-transformers' layout, or a bare encoder or causal model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.errors import BadInput, BadOption
from training.published.publication import describe_setup

if TYPE_CHECKING:
    from training.published.embedding import Pooled

# Poolings of token vectors: their mean, the last token's or the first token's vector.
POOLINGS = ("mean", "last", "cls")
_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_cls_token": "cls",
}
# The modules of sentence-transformers that are supported here.
KNOWN = ("Transformer", "Pooling", "Normalize")


def is_embedder(folder: Path) -> bool:
    """Return whether a folder has a pooling module, or is a model without a head."""
    if (folder / "1_Pooling" / "config.json").exists():
        return True
    names = _read_config(folder).get("architectures") or []
    return not (folder / "reranker.json").exists() and any(name.endswith("Model") for name in names)


def pooling_of(folder: Path, option: str = "") -> str:
    """Return the pooling of a model: the option's, else the folder's, else the usual one of its architecture.

    Raises BadInput for unknown modules.
    """
    modules = folder / "modules.json"
    for module in json.loads(modules.read_text()) if modules.exists() else []:
        kind = str(module.get("type", "")).rpartition(".")[2]
        # Leaving out a further layer would change the vectors without anybody noticing.
        if kind not in KNOWN:
            raise BadInput(
                f"{folder.name} has a module {kind}, which is not understood here: serve it with its library"
            )
    if option:
        return option
    path = folder / "1_Pooling" / "config.json"
    if path.exists():
        config: dict[str, Any] = json.loads(path.read_text())
        # Older versions of sentence-transformers write a flag for each mode, newer ones its name.
        modes = [name for key, name in _MODES.items() if config.get(key)]
        modes += [str(config["pooling_mode"])] if "pooling_mode" in config else []
        modes = ["last" if mode == "lasttoken" else mode for mode in modes]
        if len(modes) != 1 or modes[0] not in POOLINGS:
            raise BadOption("pooling", f"{folder.name} names no known pooling: choose one of {', '.join(POOLINGS)}.")
        return modes[0]
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    model = type(AutoConfig.from_pretrained(folder))
    return "last" if model in MODEL_FOR_CAUSAL_LM_MAPPING and model not in MODEL_FOR_MASKED_LM_MAPPING else "mean"


def read_query_prefix(folder: Path) -> str:
    """Return the prefix of queries in sentence-transformers' configuration, "" if the model has none."""
    path = folder / "config_sentence_transformers.json"
    prompts = json.loads(path.read_text()).get("prompts") if path.exists() else None
    return str((prompts or {}).get("query") or "")


def open_embedder(folder: Path, device: str = "cpu", pooling: str = "", precision: str = "auto") -> "Pooled":
    """Load a model folder as an embedding model. Raises BadInput for an unreadable or unsupported folder."""
    from training.published.base import choose_precision
    from training.published.embedding import Pooled

    config = _read_config(folder)
    precision = choose_precision(precision, device)
    words = describe_setup(bool(config.get("quorum_tiny")), device, precision)
    path = folder / "sentence_bert_config.json"
    length = json.loads(path.read_text()).get("max_seq_length") if path.exists() else None  # In tokens.
    return Pooled(folder, pooling_of(folder, pooling), device, words, int(length) if length else None, precision)


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "config.json").read_text()))
    except (OSError, ValueError) as error:
        raise BadInput(f"config.json of {folder.name} cannot be read: {error}") from error
