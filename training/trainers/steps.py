"""Whole optimiser steps: their rows and gradients do not depend on memory or on the number of processes.

Every process knows all rows of a step and does its share of the forward passes. If memory runs out in any process, all
repeat the step with half the tokens in a pass, so the optimiser never uses the gradient of a part of a step.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from training.published.batching import Epochs, pack_batches
from training.published.torch_memory import free_memory, is_out_of_memory
from training.trainers.callback import JobCallback, StopInStep
from training.trainers.memory import DoesNotFit
from training.trainers.processes import gather_values, group_position, sum_gradients


class StepWork(Protocol):
    """The rows and losses of a training. A loss of a step is its sum over the rows, divided by its count.

    `weights`: the weight of each loss.
    """

    weights: dict[str, float]

    def lengths(self) -> Sequence[int]:
        """Return the number of tokens of each training row."""

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """Return the divisor of each loss for a step with these rows."""

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return the sum of each loss over the rows, from one forward pass."""


class StepBatches(Sampler[list[int]]):
    """The rows of each step of an epoch, in the order of Epochs; transformers sets the epoch."""

    def __init__(self, epochs: Epochs) -> None:
        self.epochs, self.epoch = epochs, 0

    @property
    def batch_sampler(self) -> "StepBatches":
        """Itself, since transformers sets the epoch of the `batch_sampler`."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch whose rows are returned."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.epochs.order(self.epoch))

    def __len__(self) -> int:
        return self.epochs.per_epoch


class WholeSteps:
    """A mixin for trainers of transformers, the first base class, which makes their steps whole."""

    # Attributes of the trainer.
    model: Any
    args: Any
    state: Any

    def bind(self, callback: JobCallback, work: StepWork, order_by: Sequence[int] | None = None) -> Any:
        """Set the callback and the work of the trainer, and return the trainer. `order_by`: as in Epochs."""
        self.callback, self.work, self.task = callback, work, callback.task
        self.epochs = Epochs(work.lengths(), self.task.options.batch, self.task.options.seed, order_by)
        self.trained_weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        return self

    def get_train_dataloader(self) -> DataLoader[int]:
        """Return the indices of rows, all rows of a step to every process."""
        rows: Any = range(len(self.epochs.lengths))
        return DataLoader(rows, batch_sampler=StepBatches(self.epochs), collate_fn=list)

    def floating_point_ops(self, inputs: Any) -> float:
        """Return the operations of a step: for each weight and token, two forward and four back."""
        weights: int = sum(weight.numel() for weight in self.model.parameters())
        return float(6 * weights * sum(self.epochs.lengths[row] for row in inputs))

    def training_step(self, model: Any, inputs: list[int], num_items_in_batch: Any = None) -> Tensor:
        """Compute the gradient of a step with these rows, and return its loss."""
        self.model.train()
        rank, size = group_position()
        # Seeded by step, so that dropout is the same in a resumed training.
        torch.manual_seed(self.task.options.seed + (int(self.state.global_step) * size + rank) * 1_000_003)
        parts = self.gradients(inputs)
        self.callback.note(parts=parts, tokens=sum(self.epochs.lengths[row] for row in inputs))
        loss = sum(weight * parts[name] for name, weight in self.work.weights.items())
        return torch.tensor(loss, device=self.args.device)

    def gradients(self, rows: Sequence[int]) -> dict[str, float]:
        """Compute the gradients of a step, and return its losses; repeated with half the tokens if memory runs out."""
        while True:
            sums, ran_out = dict.fromkeys(self.work.weights, 0.0), False
            try:
                self._run_passes(rows, sums)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                ran_out = True
            # After the handler, since the error refers to frames with the tensors that did not fit.
            results = gather_values((ran_out, sums))
            if not any(process_ran_out for process_ran_out, _sums in results):
                break
            self.shrink(rows)
        sum_gradients(self.trained_weights)
        counts = self.work.counts(rows)
        return {name: sum(losses[name] for _ran_out, losses in results) / max(1, counts[name]) for name in sums}

    def _run_passes(self, rows: Sequence[int], sums: dict[str, float]) -> None:
        """Do this process's passes, and add their losses to `sums`.

        A separate function, so that its tensors are freed if memory runs out.
        """
        rank, size = group_position()
        counts = self.work.counts(rows)
        for pass_rows in self.passes(rows)[rank::size]:
            losses = self.work.forward(pass_rows)
            weighted = [losses[name] * (weight / max(1, counts[name])) for name, weight in self.work.weights.items()]
            torch.stack(weighted).sum().backward()  # type: ignore[no-untyped-call]
            for name, loss in losses.items():
                sums[name] += float(loss.detach())
            # A single process may stop between two passes; several processes stop together after the step.
            if size == 1 and self.callback.asked_to_stop():
                self.clear_gradients()
                raise StopInStep

    def passes(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the step's rows in forward passes of at most the token budget."""
        lengths = [self.epochs.lengths[row] for row in rows]
        budget = self.callback.progress.token_budget
        batches = pack_batches(lengths, budget, padded=not self.task.options.packing)
        return [[rows[index] for index in batch] for batch in batches]

    def shrink(self, rows: Sequence[int]) -> None:
        """Halve the token budget, down to one row in each pass. Raises DoesNotFit."""
        self.clear_gradients()
        lengths, passes = self.epochs.lengths, self.passes(rows)
        if all(len(pass_rows) == 1 for pass_rows in passes):
            longest = max(lengths[row] for row in rows)
            raise DoesNotFit(f"A row of {longest} tokens alone takes more memory than there is: lower max_length")
        # Half of the largest pass, which may be far below a generous budget.
        largest = max(len(pass_rows) * max(lengths[row] for row in pass_rows) for pass_rows in passes)
        self.callback.progress.token_budget = max(1, min(self.callback.progress.token_budget, largest) // 2)
        free_memory()
        self.callback.say(f"out of memory: going on with {self.callback.progress.token_budget:,} tokens at once")

    def clear_gradients(self) -> None:
        for weight in self.trained_weights:
            weight.grad = None
