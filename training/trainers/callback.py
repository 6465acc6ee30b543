"""Callback that ties any trainer of transformers to a job's folder: metrics, phases, cancelling, checkpoints, resuming.

A recipe makes its library's trainer with `arguments` and this callback, and calls `train`. What the
library saves in `checkpoints/checkpoint-N` counts once `trainer.json` stands beside it, which is
written last.
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

import psutil
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.integrations.integration_utils import TensorBoardCallback
from transformers.trainer_callback import PrinterCallback

from training.published.torch_memory import free_memory, is_out_of_memory
from training.recipes.job_folder import JobFolder, TrainingCancelled, write_atomically
from training.recipes.metrics import MOST_CUT, choose_checkpoint, summarize_lengths
from training.recipes.table import RecipeOptions
from training.recipes.tracking import tracker_environment
from training.trainers.finishing import dev_measures
from training.trainers.memory import DoesNotFit
from training.trainers.processes import gather, is_leading, place_in_world
from training.trainers.recipe import TrainingTask

MEASUREMENTS = 4  # Times that a training is measured on the dev split when nobody says how often.
LEAST_EVERY = 100
KEPT = 2  # Newest checkpoints that are kept to resume from, beside the best one.
# Of what transformers logs: what a line of metrics has under a name of its own.
OWN_NAMES = {"loss", "epoch", "learning_rate", "num_tokens", "num_input_tokens_seen"}

# Dense bf16 operations a second, from the makers' data sheets; a name holds one of these words, the first that fits.
RATES = {
    "B200": 2.25e15, "H200": 9.89e14, "H100 PCIe": 7.56e14, "H100": 9.89e14, "GH200": 9.89e14, "A100": 3.12e14,
    "L40S": 3.62e14, "L40": 1.81e14, "L4": 1.21e14, "A10G": 7.0e13, "A10": 1.25e14, "RTX 4090": 1.65e14,
    "RTX 3090": 7.1e13,
}  # fmt: skip

Arguments = TypeVar("Arguments", bound=TrainingArguments)


class NothingLeft(Exception):
    """All steps were done before this process began."""


class StopInStep(Exception):
    """A lone process was asked to stop within a step: the model before it is saved."""


@dataclass
class TrainingProgress:
    """Progress of a training: what a checkpoint keeps beside what the library saves."""

    step: int = 0  # Steps done.
    token_budget: int = 0
    seconds: float = 0.0
    tokens: int = 0
    # Step -> its measures on the dev split.
    measured: dict[int, dict[str, Any]] = field(default_factory=dict)


class JobCallback(TrainerCallback):
    """The callback of one training, which may be asked to stop after a step, or by a recipe's own trainer within one.

    dev_margins: raw margins of rows of the dev split by the model as it is now; each process scores its share.
    """

    def __init__(
        self,
        folder: JobFolder,
        task: TrainingTask,
        asked_to_stop: Callable[[], bool],
        dev_margins: Callable[[Sequence[Any]], list[float]],
    ) -> None:
        self.folder, self.task, self.asked, self.dev_margins = folder, task, asked_to_stop, dev_margins
        self.progress = TrainingProgress(token_budget=task.options.token_budget)
        self.total = self.every = 0
        self.flops = self.rate = 0.0
        self.cancelled = False
        self.began = 0.0
        self.trainer: Any = None
        self.news: dict[str, Any] = {}  # What a trainer noted for the line of the step that it is in.

    def arguments(self, kind: type[Arguments], rows: int, **own: Any) -> Arguments:
        """Return the library's arguments with everything that the table's options say; `own` wins.

        rows: of the training split, as many as one epoch takes, whatever a row is.
        """
        task, options = self.task, self.task.options
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        if options.tracking != "none":
            # setdefault: what whoever started the trainer has set goes first.
            for name, value in tracker_environment(self.folder.path).items():
                os.environ.setdefault(name, value)
        # Epochs may be fractions, so steps are rounded up.
        everything = math.ceil(options.epochs * math.ceil(rows / options.batch))
        total = min(everything, options.max_steps or everything)
        given: dict[str, Any] = {
            "output_dir": str(self.folder.checkpoints),
            # One process's share of a step; the steps stay the same for any number of processes.
            "per_device_train_batch_size": max(1, options.batch // processes),
            "max_steps": total,
            "learning_rate": options.learning_rate,
            "weight_decay": options.weight_decay,
            "warmup_steps": warmup_steps(options, total),
            "lr_scheduler_type": "cosine" if options.schedule == "cosine" else "constant_with_warmup",
            "max_grad_norm": options.clip,
            "seed": options.seed,
            "bf16": task.precision == "bf16",
            "use_cpu": task.device == "cpu",
            "optim": "adamw_torch_fused" if task.device == "cuda" else "adamw_torch",
            "activation_checkpointing": task.checkpointing,
            "activation_checkpointing_kwargs": {"use_reentrant": False} if task.checkpointing else None,
            "dataloader_pin_memory": task.device == "cuda",
            "logging_strategy": "steps",
            "logging_steps": 1,
            "logging_nan_inf_filter": False,  # A training that diverged says so.
            "eval_strategy": "no",
            "save_strategy": "no",  # This callback says when.
            "report_to": [] if options.tracking == "none" else [options.tracking],
            "run_name": self.folder.path.name,
            "disable_tqdm": True,
        }
        return kind(**{**given, **own})

    def train(self, trainer: Trainer) -> tuple[int, str]:
        """Do the steps left; return the published one, and why. TrainingCancelled."""
        self.trainer = trainer
        trainer.remove_callback(PrinterCallback)
        if is_leading():
            from torch.utils.tensorboard import SummaryWriter

            writer = SummaryWriter(log_dir=str(self.folder.path / "tensorboard"))
            trainer.add_callback(TensorBoardCallback(writer))  # type: ignore[no-untyped-call]
        steps = self.folder.checkpoint_steps()
        if steps:
            # Read before transformers resumes: its callbacks run before the first step.
            self.restore(json.loads((self.folder.checkpoint(steps[-1]) / "trainer.json").read_text()))
        try:
            trainer.train(resume_from_checkpoint=str(self.folder.checkpoint(steps[-1])) if steps else None)
        except NothingLeft:
            pass
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            budget = self.progress.token_budget
            raise DoesNotFit(
                f"A step takes more memory than there is: lower token_budget ({budget:,}) or max_length"
            ) from error
        except StopInStep:
            self.cancelled = True
            # The library saves at the ends of steps, and this stop came within one.
            if self.progress.step not in self.folder.checkpoint_steps():
                trainer._save_checkpoint(trainer.model, trial=None)  # type: ignore[arg-type]
                self.seal()
        if self.cancelled:
            raise TrainingCancelled
        return self.choice()

    def tell_lengths(self, lengths: Sequence[int], limit: int) -> dict[str, Any]:
        """Say before the first step how long rows are, and warn of cuts; the summary."""
        found = summarize_lengths(lengths, limit)
        if is_leading():
            if found["cut"]:
                many = found["cut"] > MOST_CUT * found["rows"]
                print(("warning: " if many else "") + found["words"], flush=True)  # noqa: T201
            self.folder.update_state(row_lengths=found)
        return found

    def note(self, **news: Any) -> None:
        """Keep values for the metrics of the step that is being done; `tokens` are added up."""
        self.news["tokens"] = self.news.get("tokens", 0) + news.pop("tokens", 0)
        self.news.update(news)

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.total = int(state.max_steps)
        self.flops, self.rate = flops_per_token(rest["model"]), device_rate(self.task.device)
        self.every = self.task.options.evaluate_every or max(1, -(-self.total // MEASUREMENTS))
        if is_leading():
            self.folder.truncate_metrics(self.progress.step)
            self.say("resumed" if self.progress.step else "training")
        if not self.progress.step:
            reserve_optimizer(rest["optimizer"])
        # Killed between a checkpoint and its measurement.
        if self.progress.step and self.is_due() and self.progress.step not in self.progress.measured:
            self.measure()
        if self.progress.step >= self.total or self.is_over():
            raise NothingLeft

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.began = time.monotonic()
        self.news = {}

    def on_substep_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.stop_if_asked(control)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        done = self.progress
        done.step = int(state.global_step)
        done.seconds += time.monotonic() - self.began
        often = self.task.options.checkpoint_every or min(self.every, LEAST_EVERY)
        control.should_save = self.is_due() or done.step % often == 0
        self.stop_if_asked(control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **rest: Any) -> None:
        if not logs or "loss" not in logs:  # The summary at the end, which transformers logs as well.
            return
        done, seconds = self.progress, max(time.monotonic() - self.began, 1e-9)
        counted = logs.get("num_tokens", logs.get("num_input_tokens_seen"))
        tokens = self.news.pop("tokens", 0) or (int(counted) - done.tokens if counted is not None else 0)
        done.tokens += tokens
        if not is_leading():
            return
        line = {
            "step": done.step,
            "steps": self.total,
            "epoch": round(float(state.epoch or 0.0), 4),
            "loss": float(logs["loss"]),
            "lr": float(logs.get("learning_rate", 0.0)),
            "tokens": done.tokens,
            "tokens_per_s": round(tokens / seconds, 1),
            "memory_mb": memory_mb(self.task.device),
            "seconds": round(done.seconds, 3),
            "token_budget": done.token_budget,
        }
        if self.rate:
            line["mfu"] = round(line["tokens_per_s"] * self.flops / self.rate, 4)
        further = {
            name: value for name, value in logs.items() if name not in OWN_NAMES and isinstance(value, int | float)
        }
        self.folder.append_metrics({**further, **line, **self.news})
        self.folder.update_state(steps=done.step, total=self.total)

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.seal()
        if self.is_due():
            self.measure()
            if self.is_over():
                control.should_training_stop = True

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Restore progress from what a checkpoint kept."""
        self.progress = TrainingProgress(**kept)
        # JSON has only strings as keys.
        self.progress.measured = {int(step): found for step, found in self.progress.measured.items()}

    def is_due(self) -> bool:
        """Return whether the model is measured after this step."""
        step = self.progress.step
        return (bool(self.task.data.dev) and (step % self.every == 0 or step == self.total)) or step == self.total

    def stop_if_asked(self, control: Any) -> None:
        """Save and end after this step when any process was asked to: one that went on would wait for the others."""
        if any(gather(self.asked())):
            self.cancelled = control.should_save = control.should_training_stop = True

    def seal(self) -> None:
        """Make this step's checkpoint whole: on disk, with progress; older ones go."""
        if not is_leading():
            return
        target = self.folder.checkpoint(self.progress.step)
        # Each file is brought to the disk before trainer.json says that the checkpoint is whole.
        for path in target.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        write_atomically(target / "trainer.json", json.dumps(asdict(self.progress)))
        steps = self.folder.checkpoint_steps()
        self.folder.prune_checkpoints({*steps[-KEPT:], self.choice()[0]})

    def measure(self) -> None:
        """Measure the model as it is on the dev split: each process scores its share of rows."""
        # By hash and not by order: another process, or the next training, takes the same queries.
        queries = sorted({row.query_id for row in self.task.data.dev}, key=lambda one: sha256(one.encode()).digest())
        chosen = set(queries[: max(1, math.ceil(self.task.options.dev_share * len(queries)))])
        dev = [row for row in self.task.data.dev if row.query_id in chosen]
        if not dev:
            return
        self.say("measuring on the dev split")
        rank, size = place_in_world()
        own = list(range(len(dev)))[rank::size]
        margins: list[float] = [0.0] * len(dev)
        for found in gather(dict(zip(own, self.dev_margins([dev[place] for place in own]), strict=True))):
            for place, margin in found.items():
                margins[place] = margin
        found = dev_measures(margins, dev)
        self.progress.measured[self.progress.step] = found
        if is_leading():
            self.folder.append_metrics({"step": self.progress.step, "dev": found})
            # They go where the losses go: to TensorBoard's files, and a tracker.
            trainer = self.trainer
            logs = {f"eval_{name}": float(value) for name, value in found.items() if isinstance(value, int | float)}
            trainer.callback_handler.on_log(trainer.args, trainer.state, trainer.control, logs)
        self.seal()
        self.say("training")

    def is_over(self) -> bool:
        """Return whether early stopping ends the training: its number of measurements passed without a better one."""
        patience = self.task.options.early_stopping
        return bool(patience) and len([step for step in self.progress.measured if step > self.choice()[0]]) >= patience

    def choice(self) -> tuple[int, str]:
        """Return the step of the checkpoint to publish, and why it is that one; the last without a dev split."""
        steps = sorted(self.progress.measured)
        if not steps:
            return self.progress.step, "the last one: there is no dev split"
        place, _, words = choose_checkpoint([self.progress.measured[step] for step in steps])
        return steps[place], words

    def say(self, phase: str) -> None:
        """Say what is going on, for the page and the log."""
        if is_leading():
            print(f"step {self.progress.step} of {self.total}: {phase}", flush=True)  # noqa: T201
            self.folder.update_state(state="running", phase=phase, steps=self.progress.step, total=self.total)


def warmup_steps(options: RecipeOptions, total: int) -> int:
    """Return the steps of the warm-up: a share of all where one is given, else a number, at most a tenth of all."""
    if options.warmup_ratio is not None:
        return math.ceil(options.warmup_ratio * total)
    # A hundred steps of warm-up, as in the paper, would be all of a short training.
    return min(options.warmup_steps, max(1, total // 10))


def flops_per_token(model: torch.nn.Module) -> float:
    """Return the operations of a token: four for each weight, there and back, and two more for each trained one."""
    sizes = [(value.numel(), value.requires_grad) for value in model.parameters()]
    return float(sum(4 * size + (2 * size if trained else 0) for size, trained in sizes))


def device_rate(device: str) -> float:
    """Return how many bf16 operations a second the makers of this process's GPUs name; 0 where none is known."""
    if device != "cuda":
        return 0.0
    name = torch.cuda.get_device_name()
    found = next((rate for known, rate in RATES.items() if known in name), 0.0)
    return found * place_in_world()[1]


def reserve_optimizer(optimizer: Any) -> None:
    """Let an optimiser allocate its state now: a step that ran out of memory in its middle could not be repeated.

    Gradients of 0 at a rate of 0 change no weight. Raises DoesNotFit.
    """
    optimizer = getattr(optimizer, "optimizer", optimizer)  # What accelerate wrapped.
    rates = [group["lr"] for group in optimizer.param_groups]
    values = [value for group in optimizer.param_groups for value in group["params"]]
    ran_out = False
    try:
        for value in values:
            value.grad = torch.zeros_like(value)
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        optimizer.step()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        ran_out = True
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    for value in values:
        value.grad = None
        # The count of steps goes into AdamW's bias correction, so this one must not count.
        if "step" in (kept := optimizer.state.get(value, {})):
            kept["step"] = kept["step"] * 0
    if any(gather(ran_out)):
        free_memory()
        raise DoesNotFit(
            "The optimiser takes more memory than there is: lower lora_rank, or take a smaller base or more GPUs"
        )


def memory_mb(device: str) -> float:
    """Return the memory in use: of the GPU at its highest, or of this process."""
    if device == "cuda":
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return round(int(psutil.Process().memory_info().rss) / 2**20, 1)
