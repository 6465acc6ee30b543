"""Texts as vectors: the pooled states of a model's last layer, normalised to length 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import normalize
from transformers import AutoModel

from training.published.base import dtype_of, load_tokenizer
from training.published.encoder import longest_input
from training.published.margins import act_in_halves
from training.published.tokens import EncodedRow

BATCH = 32  # Texts of one forward pass, of similar length.
Vectors = npt.NDArray[np.float32]


class Pooled:
    """An embedding model. `words`: the label of its setup for figures, such as "tiny model, CPU"."""

    def __init__(
        self, folder: Path, pooling: str, device: str, words: str, longest: int | None, precision: str = "fp32"
    ) -> None:
        self.pooling, self.device, self.words = pooling, device, words
        self.tokenizer = load_tokenizer(folder)
        # On the right, so that the length of a row gives the position of its last token.
        self.tokenizer.padding_side = "right"
        self.tokenizer.split_special_tokens = True  # Control tokens in a text are encoded as plain text.
        self.length = longest_input(folder, self.tokenizer, longest)
        self.model: Any = AutoModel.from_pretrained(folder, dtype=dtype_of(precision)).to(device).eval()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return the vectors of texts, shape (texts, dimensions), and the number of their tokens."""
        ids = self.tokenizer(list(texts), truncation=True, max_length=self.length)["input_ids"]
        order = sorted(range(len(texts)), key=lambda index: len(ids[index]))
        vectors: dict[int, Vectors] = {}
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            rows = [EncodedRow(ids[index]) for index in batch]
            vectors.update(zip(batch, act_in_halves(rows, self._pooled), strict=True))
        return np.stack([vectors[index] for index in range(len(texts))]), sum(map(len, ids))

    def _pooled(self, rows: list[EncodedRow]) -> list[Vectors]:
        batch = self.tokenizer.pad({"input_ids": [row.ids for row in rows]}, return_tensors="pt").to(self.device)
        states, mask = self.model(**batch).last_hidden_state, batch["attention_mask"]
        if self.pooling == "mean":
            weights = mask.unsqueeze(-1).to(states.dtype)
            # Clamped, since an empty text has no tokens.
            pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        elif self.pooling == "last":
            pooled = states[torch.arange(len(rows), device=states.device), mask.sum(1) - 1]
        else:
            pooled = states[:, 0]
        vectors: Vectors = normalize(pooled, dim=1).float().cpu().numpy()
        return list(vectors)
