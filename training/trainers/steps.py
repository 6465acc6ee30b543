"""Steps of the optimiser that are whole: the same rows and gradient, however much memory or how many processes.

Every process knows all rows of a step, does its share of the forward passes that hold them, and
learns whether memory ran out in any: then all go on with half of the tokens. So no gradient is ever
that of a part of the step.
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
from training.trainers.processes import add_gradients, gather, place_in_world


class StepWork(Protocol):
    """The work of a step. A part's value is its sum over the step's rows by `counts`, its weight in `weights`."""

    weights: dict[str, float]

    def lengths(self) -> Sequence[int]:
        """Return the tokens of each row of the training split."""

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """Return by what each part's sum is divided: of a step's rows what carries it."""

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return each part's loss as its sum over the rows; one forward pass."""


class StepBatches(Sampler[list[int]]):
    """The rows of each step of an epoch, as Epochs orders them; transformers says which epoch."""

    def __init__(self, epochs: Epochs) -> None:
        self.epochs, self.epoch = epochs, 0

    @property
    def batch_sampler(self) -> "StepBatches":
        """Return itself, since transformers tells the epoch to the `batch_sampler`."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the rows of this epoch from now on."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.epochs.order(self.epoch))

    def __len__(self) -> int:
        return self.epochs.per_epoch


class WholeSteps:
    """A mixin that makes the steps of a trainer of transformers whole; it stands first among a class's bases."""

    # Of the trainer that this is mixed into.
    model: Any
    args: Any
    state: Any

    def bind(self, callback: JobCallback, work: StepWork) -> Any:
        """Bind the callback and work whose steps these are; return the trainer."""
        self.callback, self.work, self.task = callback, work, callback.task
        self.epochs = Epochs(work.lengths(), self.task.options.batch, self.task.options.seed)
        self.trained = [value for value in self.model.parameters() if value.requires_grad]
        return self

    def get_train_dataloader(self) -> DataLoader[int]:
        """Return row numbers, all of a step for every process."""
        rows: Any = range(len(self.epochs.lengths))
        return DataLoader(rows, batch_sampler=StepBatches(self.epochs), collate_fn=list)

    def floating_point_ops(self, inputs: Any) -> float:
        """Return the operations of a step: six for each weight and token, two forth, four back."""
        weights: int = sum(value.numel() for value in self.model.parameters())
        return float(6 * weights * sum(self.epochs.lengths[row] for row in inputs))

    def training_step(self, model: Any, inputs: list[int], num_items_in_batch: Any = None) -> Tensor:
        """Compute the gradient of one step over the rows of these numbers; return its loss."""
        self.model.train()
        rank, size = place_in_world()
        # Dropout of a step is the same whether or not somebody died before it.
        torch.manual_seed(self.task.options.seed + (int(self.state.global_step) * size + rank) * 1_000_003)
        parts = self.gradients(inputs)
        self.callback.note(parts=parts, tokens=sum(self.epochs.lengths[row] for row in inputs))
        loss = sum(weight * parts[name] for name, weight in self.work.weights.items())
        return torch.tensor(loss, device=self.args.device)

    def gradients(self, rows: Sequence[int]) -> dict[str, float]:
        """Compute the gradients of the step; return the parts of its loss. When memory runs out, again with half."""
        while True:
            sums, ran_out = dict.fromkeys(self.work.weights, 0.0), False
            try:
                self._run_passes(rows, sums)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                ran_out = True
            # Outside the handler: the error holds the frames, and these hold what does not fit.
            found = gather((ran_out, sums))
            if not any(out for out, _ in found):
                break
            self.shrink(rows)
        add_gradients(self.trained)
        counts = self.work.counts(rows)
        return {name: sum(one[name] for _, one in found) / max(1, counts[name]) for name in sums}

    def _run_passes(self, rows: Sequence[int], sums: dict[str, float]) -> None:
        """Do this process's passes; add up what each part's loss is."""
        rank, size = place_in_world()
        counts = self.work.counts(rows)
        for chosen in self.passes(rows)[rank::size]:
            parts = self.work.forward(chosen)
            loss = [parts[name] * (weight / max(1, counts[name])) for name, weight in self.work.weights.items()]
            torch.stack(loss).sum().backward()  # type: ignore[no-untyped-call]
            for name, value in parts.items():
                sums[name] += float(value.detach())
            # Alone it ends between two passes; several processes agree after the step.
            if size == 1 and self.callback.asked():
                self.forget()
                raise StopInStep

    def passes(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the step's rows in forward passes of at most the token budget."""
        lengths = [self.epochs.lengths[row] for row in rows]
        budget = self.callback.progress.token_budget
        places = pack_batches(lengths, budget, padded=not self.task.options.packing)
        return [[rows[place] for place in one] for one in places]

    def shrink(self, rows: Sequence[int]) -> None:
        """Halve the token budget, down to one row for each pass."""
        self.forget()
        lengths, passes = self.epochs.lengths, self.passes(rows)
        if all(len(one) == 1 for one in passes):
            longest = max(lengths[row] for row in rows)
            raise DoesNotFit(f"A row of {longest} tokens alone takes more memory than there is: lower max_length")
        # Half of what was really used, which may be far below a generous budget.
        largest = max(len(one) * max(lengths[row] for row in one) for one in passes)
        self.callback.progress.token_budget = max(1, min(self.callback.progress.token_budget, largest) // 2)
        free_memory()
        self.callback.say(f"out of memory: going on with {self.callback.progress.token_budget:,} tokens at once")

    def forget(self) -> None:
        """Drop the gradients so far."""
        for value in self.trained:
            value.grad = None
