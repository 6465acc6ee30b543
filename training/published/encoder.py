"""Encoders: loading them as sequence classifiers, and a trained one for finishing (recipe `cross-encoder`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

from corpus.errors import BadInput
from training.published.base import dtype_of
from training.published.margins import encoder_margins
from training.published.publication import Kind
from training.published.publishing import save_model

HEAD = "ForSequenceClassification"
LONGEST = 512  # The default maximum input in tokens.


def load_encoder(folder: Path, device: str = "cpu", *, seed: int = 0, precision: str = "fp32") -> Any:
    """Load a sequence classifier with one label; a base without a head gets a random one by seed.

    Raises BadInput for causal models (recipe `prism`) and for classifiers of several labels.
    """
    config = AutoConfig.from_pretrained(folder)
    names = list_architectures(config)
    if any(name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in names):
        raise BadInput(f"{folder.name} is a causal model ({names[0]}): train it with the recipe prism")
    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise BadInput(f"{folder.name} ({config.model_type}) has no form that scores a pair: name an encoder")
    if any(name.endswith(HEAD) for name in names) and config.num_labels != 1:
        raise BadInput(f"{folder.name} classifies into {config.num_labels} labels: name an encoder without a head")
    config.num_labels = 1
    # A random head must be the same whenever the base is loaded, since it is also measured as the base.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            folder, config=config, dtype=dtype_of(precision)
        )
    return model.to(device).eval()


def list_architectures(config: Any) -> list[str]:
    """Return the model classes that a configuration names, which may be none."""
    return list(getattr(config, "architectures", None) or [])


def longest_input(folder: Path, tokenizer: Any, max_length: int | None = None) -> int:
    """Return the maximum input in tokens: the smallest of `max_length`, the tokenizer's limit and the positions."""
    config = AutoConfig.from_pretrained(folder)
    limits = [max_length or LONGEST, int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        # RoBERTa's positions begin after the padding index.
        offset = 2 if config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0
        limits.append(int(positions) - offset)
    return min(limit for limit in limits if limit > 0)


class EncoderTrained:
    """A `finishing.Trained` of a base folder and the folder of the chosen checkpoint."""

    kind: Kind = "encoder"
    has_adapter = False

    def __init__(self, base: Path, tuned: Path, *, max_length: int, device: str = "cpu", seed: int = 0) -> None:
        self.base, self.tuned, self.max_length, self.device, self.seed = base, tuned, max_length, device, seed
        self.tokenizer = AutoTokenizer.from_pretrained(base)
        # A base without a head gets a random one from `load_encoder`.
        names = list_architectures(AutoConfig.from_pretrained(base))
        self.random_head = not any(name.endswith(HEAD) for name in names)

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        return self._margins(load_encoder(self.base, self.device, seed=self.seed), self.tokenizer, rows)

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        return self._margins(load_encoder(self.tuned, self.device), self.tokenizer, rows)

    def write(self, folder: Path) -> None:
        save_model(folder, load_encoder(self.tuned, "cpu"), self.tokenizer, self.max_length)

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        return self._margins(load_encoder(folder, self.device), AutoTokenizer.from_pretrained(folder), rows)

    def _margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        pairs = [(row.query, row.document) for row in rows]
        return encoder_margins(model, tokenizer, pairs, max_length=self.max_length)
