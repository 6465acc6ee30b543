"""What the loop needs of a recipe: rows as tokens, a model, a loss, margins, and what finishing publishes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from training.recipes.data import Example, TrainingSet
from training.recipes.table import RecipeOptions
from training.trainers.finishing import Trained


@dataclass(frozen=True)
class TrainingTask:
    """The work of a recipe, checked before anything large is loaded."""

    recipe: str
    base: Path
    base_name: str
    data: TrainingSet
    options: RecipeOptions
    device: str
    tiny: bool
    memory_mb: float | None = None  # What the trainer may take; None: all that is free.

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the base's weights; what is trained itself stays in fp32."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    @property
    def precision(self) -> str:
        """The number format while training: fp32 or bf16."""
        if self.options.precision != "auto":
            return self.options.precision
        return "bf16" if self.device == "cuda" else "fp32"

    @property
    def checkpointing(self) -> bool:
        """Whether activations are computed again on the way back instead of kept."""
        asked = self.options.gradient_checkpointing
        return self.device == "cuda" and not self.tiny if asked is None else asked


class Recipe(Protocol):
    """One recipe at work on one task."""

    # Part of the loss -> its weight. A part's value is its sum over the step's rows by the rows that carry it.
    weights: dict[str, float]

    # What is trained; the loop may wrap it, and `forward` calls what it is given.
    model: torch.nn.Module

    def lengths(self) -> list[int]:
        """Return the tokens of each row of the training split."""

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """Return how many of the rows carry each part of the loss."""

    def forward(self, model: torch.nn.Module, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return each part's loss as its sum over the rows; one forward pass."""

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        """Return raw fp32 margins of the model as it is now."""

    def save(self, folder: Path) -> None:
        """Save the trained weights."""

    def load(self, folder: Path) -> None:
        """Go back to saved weights."""

    def trained(self, checkpoint: Path) -> Trained:
        """Return the chosen checkpoint for finishing, in fp32."""

    def record(self) -> dict[str, Any]:
        """Return the fields of publication.Record that only the recipe knows."""
