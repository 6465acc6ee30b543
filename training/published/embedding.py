"""Texts as vectors: the model's last layer, pooled, of length 1."""

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

TOGETHER = 32  # Texts of one forward pass, those of similar length together.
Vectors = npt.NDArray[np.float32]


class Pooled:
    """A model folder that turns texts into vectors. `words`: what stands beside its figures, "tiny model, CPU"."""

    def __init__(
        self, folder: Path, pooling: str, device: str, words: str, longest: int | None, precision: str = "fp32"
    ) -> None:
        self.pooling, self.device, self.words = pooling, device, words
        self.tokenizer = load_tokenizer(folder)
        # On the right, since the last token is looked up by the length of the row.
        self.tokenizer.padding_side = "right"
        self.tokenizer.split_special_tokens = True  # A control token in a text stays text.
        self.length = longest_input(folder, self.tokenizer, longest)
        self.model: Any = AutoModel.from_pretrained(folder, dtype=dtype_of(precision)).to(device).eval()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return vectors of length 1, (n, size), and how many tokens were read."""
        ids = self.tokenizer(list(texts), truncation=True, max_length=self.length)["input_ids"]
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        rows: dict[int, Vectors] = {}
        for begin in range(0, len(order), TOGETHER):
            part = order[begin : begin + TOGETHER]
            chosen = [EncodedRow(ids[place]) for place in part]
            rows.update(zip(part, act_in_halves(chosen, self._pooled), strict=True))
        return np.stack([rows[place] for place in range(len(texts))]), sum(map(len, ids))

    def _pooled(self, rows: list[EncodedRow]) -> list[Vectors]:
        batch = self.tokenizer.pad({"input_ids": [row.ids for row in rows]}, return_tensors="pt").to(self.device)
        states, mask = self.model(**batch).last_hidden_state, batch["attention_mask"]
        if self.pooling == "mean":
            weights = mask.unsqueeze(-1).to(states.dtype)
            # clamp, since an empty text has no token to divide by.
            found = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        elif self.pooling == "last":
            found = states[torch.arange(len(rows), device=states.device), mask.sum(1) - 1]
        else:
            found = states[:, 0]
        vectors: Vectors = normalize(found, dim=1).float().cpu().numpy()
        return list(vectors)
