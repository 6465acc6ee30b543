"""Recipe `ablation`: which loss distils a teacher's scores best, on the same groups and steps (Prism appendix B).

The option `loss` is point, list, point+list or point+list+rank. A training row is a whole group of documents, never
split between passes or processes. None of the four losses trains the model to write text.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from training.distillation.groups import group_candidates
from training.distillation.losses import list_loss, point_loss, rank_loss
from training.published.margins import AnswerHead
from training.recipes.data import POINT
from training.recipes.job_folder import JobFolder
from training.recipes.table import AblationOptions
from training.trainers.prism import PrismRecipe, label_states
from training.trainers.processes import is_first_process
from training.trainers.recipe import TrainingTask

DOCUMENTS = frozenset({POINT})  # The loss of every row here, whatever its export says.


class LossAblation(PrismRecipe):
    """A `recipe.Recipe` for one of the four losses. Raises BadInput for a set without any group."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, AblationOptions)
        self.options = task.options
        groups, self.summary = group_candidates(task.data.train, self.options.negatives, self.options.seed)
        # Only the rows of some group are tokenised, so groups are renumbered.
        grouped_rows = sorted({index for group in groups for index in group})
        position = {index: position for position, index in enumerate(grouped_rows)}
        self.groups = [[position[index] for index in group] for group in groups]
        rows = [replace(task.data.train[index], losses=DOCUMENTS) for index in grouped_rows]
        super().__init__(replace(task, data=replace(task.data, train=rows)))
        parts = self.options.loss.split("+")
        self.weights = {part: self.options.point_weight if part == "point" else 1.0 for part in parts}

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        if is_first_process():
            print(self.summary, flush=True)  # noqa: T201
        return super().train(folder, asked_to_stop)

    def lengths(self) -> list[int]:
        return [sum(self._lengths[index] for index in group) for group in self.groups]

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """Return what each loss is averaged over: documents for the point loss, groups for the others."""
        documents = sum(len(self.groups[row]) for row in rows)
        return {part: documents if part == "point" else len(rows) for part in self.weights}

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        margins, scores = self.group_margins(rows)
        values: dict[str, Callable[[], Tensor]] = {
            "point": lambda: point_loss(margins, scores),
            "list": lambda: list_loss(margins, scores, self.options.temperature),
            "rank": lambda: rank_loss(margins, scores, self.options.temperature),
        }
        return {part: values[part]().sum() for part in self.weights}

    def group_margins(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return margins and teacher scores of groups, each a tensor (groups, documents) in fp32."""
        documents = [self.rows[index] for row in rows for index in self.groups[row]]
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            states = label_states(self.model, documents, int(self.tokenizer.pad_token_id))
        margins = AnswerHead(self.model, self.yes_id, self.no_id).compare(states)
        scores = torch.tensor([document.teacher for document in documents], device=margins.device)
        return margins.view(len(rows), -1), scores.view(len(rows), -1)

    def record(self) -> dict[str, Any]:
        return super().record() | {"notes": {"groups": len(self.groups), "words": self.summary}}
