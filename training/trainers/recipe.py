"""The interface of a recipe, and the task that it is made with."""

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
    """A training as a task for a recipe, checked before anything large is loaded."""

    recipe: str
    base: Path
    base_name: str
    data: TrainingSet
    options: RecipeOptions
    device: str
    tiny: bool
    memory_mb: float | None = None  # The memory that the trainer may use; None: all that is free.
    cache: Path | None = None  # The folder of tokenised rows, for this process and those that resume.

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the base's weights; trained weights are in fp32."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    @property
    def precision(self) -> str:
        """The number format of training, fp32 or bf16."""
        if self.options.precision != "auto":
            return self.options.precision
        return "bf16" if self.device == "cuda" else "fp32"

    @property
    def checkpointing(self) -> bool:
        """Whether activations are recomputed in the backward pass instead of stored."""
        option = self.options.gradient_checkpointing
        return self.device == "cuda" and not self.tiny if option is None else option


class Recipe(Protocol):
    """A recipe for one task. Each process of a training makes one."""

    task: TrainingTask
    model: Any  # The model in training; None afterwards, since publishing needs the memory.

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        """Train with the library's trainer (callback.JobCallback); return the step to publish, and the reason.

        Raises TrainingCancelled after saving a checkpoint.
        """

    def trained(self, checkpoint: Path) -> Trained:
        """Return the chosen checkpoint for finishing, on the task's device."""

    def record(self) -> dict[str, Any]:
        """Return the fields of publication.Record that only the recipe knows."""
