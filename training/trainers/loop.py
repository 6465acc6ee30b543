"""The loop of all recipes: steps, measurements, checkpoints; resumed, it goes on with the losses it would have had."""

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from torch.nn.parallel import DistributedDataParallel

from corpus.errors import QuorumError
from training.jobs.folder import JobFolder, TrainingCancelled, write_folder
from training.recipes.metrics import choose_checkpoint
from training.recipes.table import RecipeOptions
from training.trainers.batching import Epochs, pack_batches
from training.trainers.finishing import dev_measures
from training.trainers.recipe import TrainingTask
from training.trainers.world import World

MEASUREMENTS = 4  # Times that a training is measured on the dev split when nobody says how often.
LEAST_EVERY = 100
KEPT = 2  # Newest checkpoints that are kept to resume from, beside the best one.
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")


class DoesNotFit(QuorumError):
    """One row alone takes more memory than there is."""


def learning_rate(options: RecipeOptions, step: int, total: int) -> float:
    """Return the rate of a step (from 0): linear warm-up (at most a tenth of all), then cosine to 0, or constant."""
    warmup = min(options.warmup_steps, max(1, total // 10))
    if step < warmup:
        return options.learning_rate * (step + 1) / warmup
    if options.schedule == "constant":
        return options.learning_rate
    share = (step - warmup) / max(1, total - warmup)
    return options.learning_rate * 0.5 * (1.0 + math.cos(math.pi * share))


@dataclass
class TrainingProgress:
    """How far a training is: what a checkpoint keeps beside weights and optimiser."""

    step: int = 0  # Steps done.
    token_budget: int = 0
    seconds: float = 0.0
    tokens: int = 0
    # Step -> its measures on the dev split.
    measured: dict[int, dict[str, Any]] = field(default_factory=dict)


class Loop:
    """One training, which may be asked to stop after every forward pass."""

    def __init__(
        self, folder: JobFolder, task: TrainingTask, recipe: Any, world: World, asked_to_stop: Callable[[], bool]
    ) -> None:
        self.folder, self.task, self.recipe, self.world, self.asked = folder, task, recipe, world, asked_to_stop
        options = task.options
        self.epochs = Epochs(recipe.lengths(), options.batch, options.seed)
        everything = math.ceil(options.epochs * self.epochs.per_epoch)
        self.total = min(everything, options.max_steps or everything)
        self.every = options.evaluate_every or max(1, -(-self.total // MEASUREMENTS))  # Steps between measurements.
        # Several processes go through the wrapped model always, or their gradients are not shared.
        self.model: torch.nn.Module = DistributedDataParallel(recipe.model) if world.size > 1 else recipe.model
        self.trained = [value for value in recipe.model.parameters() if value.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=options.learning_rate, weight_decay=options.weight_decay)
        self.progress = TrainingProgress(token_budget=options.token_budget)

    def run(self) -> tuple[int, str]:
        """Do all steps that are left; return the step that is published, and why. Raises TrainingCancelled."""
        self.resume()
        while self.progress.step < self.total:
            self.one()
            self.after()
        return self.choice()

    def resume(self) -> None:
        """Go on from the newest whole checkpoint, where there is one."""
        steps = self.folder.steps()
        if steps:
            kept = load_checkpoint(self.folder.checkpoint(steps[-1]), self.recipe, self.optimizer)
            self.progress = TrainingProgress(**kept)
            # JSON has only strings as keys.
            self.progress.measured = {int(step): found for step, found in self.progress.measured.items()}
        if self.world.leads:
            self.folder.keep_until(self.progress.step)
            self.say("resumed" if steps else "training")

    def one(self) -> None:
        """Do one step of the optimiser."""
        step, began = self.progress.step, time.monotonic()
        rows = self.epochs.step(step)
        # Dropout of a step is the same whether or not somebody died before it.
        torch.manual_seed(self.task.options.seed + (step * self.world.size + self.world.rank) * 1_000_003)
        parts = self.gradients(rows)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.task.options, step, self.total)
        if self.task.options.clip:
            torch.nn.utils.clip_grad_norm_(self.trained, self.task.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.tell(rows, parts, time.monotonic() - began)

    def gradients(self, rows: Sequence[int]) -> dict[str, float]:
        """Compute the gradients of the step; return the parts of its loss. When memory runs out, again with half."""
        while True:
            try:
                return self._gradients(rows)
            except RuntimeError as error:  # On a CPU torch has no class of its own for it, only these words.
                if not isinstance(error, torch.OutOfMemoryError) and not any(mark in str(error) for mark in NO_MEMORY):
                    raise
            self.shrink(rows)

    def shrink(self, rows: Sequence[int]) -> None:
        """Halve the token budget, down to one row for each pass."""
        self.optimizer.zero_grad(set_to_none=True)
        lengths = self.epochs.lengths
        if all(len(one) == 1 for one in self.passes(rows)):
            longest = max(lengths[row] for row in rows)
            raise DoesNotFit(f"a row of {longest} tokens alone takes more memory than there is: lower max_length")
        # Half of what was really used, which may be far below a generous budget.
        largest = max(len(one) * max(lengths[row] for row in one) for one in self.passes(rows))
        self.progress.token_budget = max(1, min(self.progress.token_budget, largest) // 2)
        if self.task.device == "cuda":
            torch.cuda.empty_cache()
        self.say(f"out of memory: going on with {self.progress.token_budget:,} tokens at once")

    def passes(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the step's rows in forward passes of at most the token budget."""
        lengths = [self.epochs.lengths[row] for row in rows]
        places = pack_batches(lengths, self.progress.token_budget, padded=not self.task.options.packing)
        return [[rows[place] for place in one] for one in places]

    def _gradients(self, rows: Sequence[int]) -> dict[str, float]:
        passes = self.passes(rows)
        own = passes[self.world.rank :: self.world.size]
        counts = self.recipe.counts(rows)
        weights = self.recipe.weights
        sums = dict.fromkeys(weights, 0.0)
        # A process that has none of the passes takes part in one, with a share of 0: gradients are exchanged by all.
        for place, chosen in enumerate(own or passes[:1]):
            last = place == len(own or passes[:1]) - 1
            with nullcontext() if last or self.world.size == 1 else self.model.no_sync():  # type: ignore[operator]
                parts = self.recipe.forward(self.model, chosen)
                # Wrapped, gradients are averaged over processes: each part is taken as often as there are processes.
                share = self.world.size if own else 0.0
                loss = [parts[name] * (weight * share / max(1, counts[name])) for name, weight in weights.items()]
                torch.stack(loss).sum().backward()  # type: ignore[no-untyped-call]
            for name, value in parts.items():
                sums[name] += float(value.detach()) if own else 0.0
            self.check_stop()
        sums = self.world.total(sums)
        return {name: value / max(1, counts[name]) for name, value in sums.items()}

    def check_stop(self) -> None:
        """End a training that runs alone between two passes; several processes agree after the step."""
        if self.world.size == 1 and self.asked():
            self.optimizer.zero_grad(set_to_none=True)
            self.save()
            raise TrainingCancelled

    def tell(self, rows: Sequence[int], parts: dict[str, float], seconds: float) -> None:
        """Say what a step that is done has cost and what it gave."""
        tokens = sum(self.epochs.lengths[row] for row in rows)
        done = self.progress
        done.step, done.seconds, done.tokens = done.step + 1, done.seconds + seconds, done.tokens + tokens
        if not self.world.leads:
            return
        loss = sum(weight * parts[name] for name, weight in self.recipe.weights.items())
        self.folder.add(
            {
                "step": done.step,
                "steps": self.total,
                "epoch": round(done.step / self.epochs.per_epoch, 4),
                "loss": loss,
                "parts": parts,
                "lr": self.optimizer.param_groups[0]["lr"],
                "tokens": done.tokens,
                "tokens_per_s": round(tokens / max(seconds, 1e-9), 1),
                "memory_mb": memory_mb(self.task.device),
                "seconds": round(done.seconds, 3),
                "token_budget": done.token_budget,
            }
        )
        self.folder.say(steps=done.step, total=self.total)

    def after(self) -> None:
        """Measure, save and end where it is time to."""
        step, options = self.progress.step, self.task.options
        measured = step % self.every == 0 or step == self.total
        if measured and self.task.data.dev:
            self.measure()
        if measured or step % (options.checkpoint_every or min(self.every, LEAST_EVERY)) == 0:
            self.save()
        # All processes stop after the same step: one that went on would wait for the others' gradients.
        if self.world.any(self.asked()):
            self.save()
            raise TrainingCancelled

    def measure(self) -> None:
        """Measure the model as it is now on the dev split."""
        if not self.world.leads:
            return
        self.say("measuring on the dev split")
        found = dev_measures(self.recipe.dev_margins(self.task.data.dev), self.task.data.dev)
        self.progress.measured[self.progress.step] = found
        self.folder.add({"step": self.progress.step, "dev": found})
        self.say("training")

    def choice(self) -> tuple[int, str]:
        """Return the step of the checkpoint to publish, and why it is that one; the last without a dev split."""
        steps = sorted(self.progress.measured)
        if not steps:
            return self.progress.step, "the last one: there is no dev split"
        place, _, words = choose_checkpoint([self.progress.measured[step] for step in steps])
        return steps[place], words

    def save(self) -> None:
        """Write a checkpoint of this step; older ones go, except the best so far."""
        if not self.world.leads:
            return
        target = self.folder.checkpoint(self.progress.step)
        if not (target / "trainer.json").exists():
            save_checkpoint(target, self.recipe, self.optimizer, vars(self.progress))
        steps = self.folder.steps()
        self.folder.prune({*steps[-KEPT:], self.choice()[0]})

    def say(self, phase: str) -> None:
        """Say what is going on, for the page and the log."""
        if self.world.leads:
            print(f"step {self.progress.step} of {self.total}: {phase}", flush=True)  # noqa: T201
            self.folder.say(state="running", phase=phase, steps=self.progress.step, total=self.total)


def memory_mb(device: str) -> float:
    """Return the memory in use: of the GPU at its highest, or of this process."""
    if device == "cuda":
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return round(int(psutil.Process().memory_info().rss) / 2**20, 1)


def save_checkpoint(folder: Path, recipe: Any, optimizer: torch.optim.Optimizer, progress: Mapping[str, Any]) -> None:
    """Write a checkpoint; `trainer.json` comes last."""
    random: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state_all()
    shutil.rmtree(folder, ignore_errors=True)  # What was cut off may lie there.
    with write_folder(folder) as part:
        recipe.save(part)
        torch.save({"optimizer": optimizer.state_dict(), "random": random}, part / "optimizer.pt")
        (part / "trainer.json").write_text(json.dumps(dict(progress)))


def load_checkpoint(folder: Path, recipe: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Go back to a checkpoint; return its progress."""
    recipe.load(folder)
    kept = torch.load(folder / "optimizer.pt", weights_only=True)
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["random"]["cpu"])
    if torch.cuda.is_available() and "cuda" in kept["random"]:
        torch.cuda.set_rng_state_all(kept["random"]["cuda"])
    return dict(json.loads((folder / "trainer.json").read_text()))
