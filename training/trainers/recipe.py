"""The interface of a recipe: training by a library's trainer, and what is published of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from training.recipes.data import TrainingSet
from training.recipes.job_folder import JobFolder
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
    cache: Path | None = None  # Where rows as tokens are kept, for this process and those that resume.

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
        """Return whether activations are computed again on the way back instead of kept."""
        asked = self.options.gradient_checkpointing
        return self.device == "cuda" and not self.tiny if asked is None else asked


class Recipe(Protocol):
    """A recipe at work on one task, which it is made with; all processes of a training make one."""

    task: TrainingTask
    model: Any  # What it trains; None once it is trained: publishing needs the memory.

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        """Train by the library's trainer (callback.JobCallback); return the step to publish, and why it is that one.

        Raises TrainingCancelled once what it has is saved.
        """

    def trained(self, checkpoint: Path) -> Trained:
        """Return the chosen checkpoint for finishing, on the task's device; loads what it needs."""

    def record(self) -> dict[str, Any]:
        """Return the fields of publication.Record that only the recipe knows."""
