"""The callback that connects any transformers trainer to a job's folder: metrics, state, cancelling, checkpoints.

A recipe makes its library's trainer with `arguments` and this callback, and calls `train`. A folder that the library
saves, `checkpoints/checkpoint-N`, is a complete checkpoint once it contains `trainer.json`, which is written last.
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
from training.trainers.processes import gather_values, group_position, is_first_process
from training.trainers.recipe import TrainingTask

MEASUREMENTS = 4  # The default number of measurements on the dev split.
LEAST_EVERY = 100
KEPT = 2  # The newest checkpoints are kept to resume from, in addition to the best one.
# Values in transformers' logs that a line of metrics has under other names.
OWN_NAMES = {"loss", "epoch", "learning_rate", "num_tokens", "num_input_tokens_seen"}

# Dense bf16 operations per second, from the manufacturers' data sheets, by the first of these words in a GPU's name.
RATES = {
    "B200": 2.25e15, "H200": 9.89e14, "H100 PCIe": 7.56e14, "H100": 9.89e14, "GH200": 9.89e14, "A100": 3.12e14,
    "L40S": 3.62e14, "L40": 1.81e14, "L4": 1.21e14, "A10G": 7.0e13, "A10": 1.25e14, "RTX 4090": 1.65e14,
    "RTX 3090": 7.1e13,
}  # fmt: skip

Arguments = TypeVar("Arguments", bound=TrainingArguments)


class NothingLeft(Exception):
    """All steps were done before this process started."""


class StopInStep(Exception):
    """A training in one process was asked to stop within a step; the model before the step is saved."""


@dataclass
class TrainingProgress:
    """The progress of a training, saved in a checkpoint in addition to the library's files."""

    step: int = 0  # The number of completed steps.
    token_budget: int = 0
    seconds: float = 0.0
    tokens: int = 0
    # The measures on the dev split by step.
    measured: dict[int, dict[str, Any]] = field(default_factory=dict)


class JobCallback(TrainerCallback):
    """The callback of one training.

    `asked_to_stop` is called after each step, and by some recipes' trainers also within a step. `dev_margins` returns
    the current model's raw margins of rows of the dev split; each process scores its share.
    """

    def __init__(
        self,
        folder: JobFolder,
        task: TrainingTask,
        asked_to_stop: Callable[[], bool],
        dev_margins: Callable[[Sequence[Any]], list[float]],
    ) -> None:
        self.folder, self.task, self.asked_to_stop, self.dev_margins = folder, task, asked_to_stop, dev_margins
        self.progress = TrainingProgress(token_budget=task.options.token_budget)
        self.total = self.measure_every = 0
        self.flops = self.rate = 0.0
        self.cancelled = False
        self.step_started_at = 0.0
        self.trainer: Any = None
        self.step_metrics: dict[str, Any] = {}  # Further metrics of the current step, from `note`.

    def arguments(self, kind: type[Arguments], rows: int, **own: Any) -> Arguments:
        """Return the library's arguments for the recipe's options, overridden by `own`.

        `rows`: the number of rows in an epoch, whatever a recipe's rows are.
        """
        task, options = self.task, self.task.options
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        if options.tracking != "none":
            # Variables that are already set have priority.
            for name, value in tracker_environment(self.folder.path).items():
                os.environ.setdefault(name, value)
        # Epochs may be fractions, so steps are rounded up.
        all_steps = math.ceil(options.epochs * math.ceil(rows / options.batch))
        total = min(all_steps, options.max_steps or all_steps)
        arguments: dict[str, Any] = {
            "output_dir": str(self.folder.checkpoints),
            # A process's share of a step; the steps are the same for any number of processes.
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
            "logging_nan_inf_filter": False,  # The loss of a training that diverged is logged as it is.
            "eval_strategy": "no",
            "save_strategy": "no",  # This callback decides when to save.
            "report_to": [] if options.tracking == "none" else [options.tracking],
            "run_name": self.folder.path.name,
            "disable_tqdm": True,
        }
        return kind(**{**arguments, **own})

    def train(self, trainer: Trainer) -> tuple[int, str]:
        """Do the remaining steps, and return the step of the checkpoint to publish, with the reason for that choice.

        Raises TrainingCancelled, and DoesNotFit if memory runs out.
        """
        self.trainer = trainer
        trainer.remove_callback(PrinterCallback)
        if is_first_process():
            from torch.utils.tensorboard import SummaryWriter

            writer = SummaryWriter(log_dir=str(self.folder.path / "tensorboard"))
            trainer.add_callback(TensorBoardCallback(writer))  # type: ignore[no-untyped-call]
        steps = self.folder.checkpoint_steps()
        if steps:
            # Restored before transformers resumes, since on_train_begin needs it.
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
            # The library saves only at the end of a step.
            if self.progress.step not in self.folder.checkpoint_steps():
                trainer._save_checkpoint(trainer.model, trial=None)  # type: ignore[arg-type]
                self.seal()
        if self.cancelled:
            raise TrainingCancelled
        return self.choice()

    def report_lengths(self, lengths: Sequence[int], limit: int) -> dict[str, Any]:
        """Return a summary of the rows' lengths, write it to the state, and log a warning if many rows are cut."""
        summary = summarize_lengths(lengths, limit)
        if is_first_process():
            if summary["cut"]:
                has_many_cut = summary["cut"] > MOST_CUT * summary["rows"]
                print(("warning: " if has_many_cut else "") + summary["words"], flush=True)  # noqa: T201
            self.folder.update_state(row_lengths=summary)
        return summary

    def note(self, *, tokens: int = 0, **metrics: Any) -> None:
        """Add metrics to the current step's line; `tokens` are added up over the passes of a step."""
        self.step_metrics["tokens"] = self.step_metrics.get("tokens", 0) + tokens
        self.step_metrics.update(metrics)

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.total = int(state.max_steps)
        self.flops, self.rate = flops_per_token(rest["model"]), device_rate(self.task.device)
        self.measure_every = self.task.options.evaluate_every or max(1, -(-self.total // MEASUREMENTS))
        if is_first_process():
            self.folder.truncate_metrics(self.progress.step)
            self.say("resumed" if self.progress.step else "training")
        if not self.progress.step:
            reserve_optimizer(rest["optimizer"])
        # An earlier process was killed between a checkpoint and its measurement.
        if self.progress.step and self.is_due() and self.progress.step not in self.progress.measured:
            self.measure()
        if self.progress.step >= self.total or self.is_over():
            raise NothingLeft

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.step_started_at = time.monotonic()
        self.step_metrics = {}

    def on_substep_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.stop_if_asked(control)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.progress.step = int(state.global_step)
        self.progress.seconds += time.monotonic() - self.step_started_at
        save_every = self.task.options.checkpoint_every or min(self.measure_every, LEAST_EVERY)
        control.should_save = self.is_due() or self.progress.step % save_every == 0
        self.stop_if_asked(control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **rest: Any) -> None:
        # Without a loss it is transformers' summary at the end.
        if not logs or "loss" not in logs:
            return
        progress, seconds = self.progress, max(time.monotonic() - self.step_started_at, 1e-9)
        total_tokens = logs.get("num_tokens", logs.get("num_input_tokens_seen"))
        tokens = self.step_metrics.pop("tokens", 0)
        if not tokens and total_tokens is not None:
            tokens = int(total_tokens) - progress.tokens
        progress.tokens += tokens
        if not is_first_process():
            return
        line = {
            "step": progress.step,
            "steps": self.total,
            "epoch": round(float(state.epoch or 0.0), 4),
            "loss": float(logs["loss"]),
            "lr": float(logs.get("learning_rate", 0.0)),
            "tokens": progress.tokens,
            "tokens_per_s": round(tokens / seconds, 1),
            "memory_mb": memory_mb(self.task.device),
            "seconds": round(progress.seconds, 3),
            "token_budget": progress.token_budget,
        }
        if self.rate:
            line["mfu"] = round(line["tokens_per_s"] * self.flops / self.rate, 4)
        library_metrics = {
            name: value for name, value in logs.items() if name not in OWN_NAMES and isinstance(value, int | float)
        }
        self.folder.append_metrics({**library_metrics, **line, **self.step_metrics})
        self.folder.update_state(steps=progress.step, total=self.total)

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.seal()
        if self.is_due():
            self.measure()
            if self.is_over():
                control.should_training_stop = True

    def restore(self, progress: Mapping[str, Any]) -> None:
        """Restore the progress that a checkpoint saved."""
        self.progress = TrainingProgress(**progress)
        # Keys are strings in JSON.
        self.progress.measured = {int(step): measures for step, measures in self.progress.measured.items()}

    def is_due(self) -> bool:
        """Return whether the model is measured, and saved, after this step."""
        step = self.progress.step
        return step == self.total or (bool(self.task.data.dev) and step % self.measure_every == 0)

    def stop_if_asked(self, control: Any) -> None:
        """Save and stop after this step if any process was asked to, since a process cannot continue alone."""
        if any(gather_values(self.asked_to_stop())):
            self.cancelled = control.should_save = control.should_training_stop = True

    def seal(self) -> None:
        """Complete this step's checkpoint by syncing its files and writing trainer.json, and delete older ones."""
        if not is_first_process():
            return
        target = self.folder.checkpoint(self.progress.step)
        # Every file must be on disk before trainer.json marks the checkpoint as complete.
        for path in target.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        write_atomically(target / "trainer.json", json.dumps(asdict(self.progress)))
        steps = self.folder.checkpoint_steps()
        self.folder.prune_checkpoints({*steps[-KEPT:], self.choice()[0]})

    def measure(self) -> None:
        """Measure the current model on the dev split, of which each process scores its share."""
        # By hash, so that all processes, and other trainings, measure the same queries.
        query_ids = {row.query_id for row in self.task.data.dev}
        queries = sorted(query_ids, key=lambda query_id: sha256(query_id.encode()).digest())
        sample = set(queries[: max(1, math.ceil(self.task.options.dev_share * len(queries)))])
        dev = [row for row in self.task.data.dev if row.query_id in sample]
        if not dev:
            return
        self.say("measuring on the dev split")
        rank, size = group_position()
        shares = gather_values(self.dev_margins(dev[rank::size]))
        margins = [shares[index % size][index // size] for index in range(len(dev))]
        measures = dev_measures(margins, dev)
        self.progress.measured[self.progress.step] = measures
        if is_first_process():
            self.folder.append_metrics({"step": self.progress.step, "dev": measures})
            # Also to TensorBoard's files and a tracker, like the losses.
            trainer = self.trainer
            logs = {f"eval_{name}": float(value) for name, value in measures.items() if isinstance(value, int | float)}
            trainer.callback_handler.on_log(trainer.args, trainer.state, trainer.control, logs)
        self.seal()
        self.say("training")

    def is_over(self) -> bool:
        """Return whether early stopping ends the training, after so many measurements without a better one."""
        patience, best = self.task.options.early_stopping, self.choice()[0]
        return bool(patience) and sum(step > best for step in self.progress.measured) >= patience

    def choice(self) -> tuple[int, str]:
        """Return the step of the checkpoint to publish, the last one without a dev split, and the reason."""
        steps = sorted(self.progress.measured)
        if not steps:
            return self.progress.step, "the last one: there is no dev split"
        index, _ranks, reason = choose_checkpoint([self.progress.measured[step] for step in steps])
        return steps[index], reason

    def say(self, phase: str) -> None:
        """Report the current phase on the job's page and in its log."""
        if is_first_process():
            print(f"step {self.progress.step} of {self.total}: {phase}", flush=True)  # noqa: T201
            self.folder.update_state(state="running", phase=phase, steps=self.progress.step, total=self.total)


def warmup_steps(options: RecipeOptions, total: int) -> int:
    """Return the number of warm-up steps: `warmup_ratio` of all, or else `warmup_steps`, at most a tenth of all."""
    if options.warmup_ratio is not None:
        return math.ceil(options.warmup_ratio * total)
    # The paper's hundred steps of warm-up could be more than a short training has.
    return min(options.warmup_steps, max(1, total // 10))


def flops_per_token(model: torch.nn.Module) -> float:
    """Return the operations of a token, forward and back: four for each weight, and two more for each trained one."""
    return float(sum((6 if weight.requires_grad else 4) * weight.numel() for weight in model.parameters()))


def device_rate(device: str) -> float:
    """Return the bf16 operations per second of the training's GPUs, according to RATES; 0 if they are unknown."""
    if device != "cuda":
        return 0.0
    name = torch.cuda.get_device_name()
    rate = next((rate for word, rate in RATES.items() if word in name), 0.0)
    return rate * group_position().size


def reserve_optimizer(optimizer: Any) -> None:
    """Make an optimiser allocate its state now, since an optimiser step that runs out of memory cannot be repeated.

    The step has gradients of 0 and a learning rate of 0, so it changes no weight. Raises DoesNotFit.
    """
    optimizer = getattr(optimizer, "optimizer", optimizer)  # Without accelerate's wrapper.
    rates = [group["lr"] for group in optimizer.param_groups]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    ran_out = False
    try:
        for weight in weights:
            weight.grad = torch.zeros_like(weight)
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        optimizer.step()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        ran_out = True
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    for weight in weights:
        weight.grad = None
        # AdamW's bias correction uses the count of steps, which must not include this one.
        if "step" in (state := optimizer.state.get(weight, {})):
            state["step"] = state["step"] * 0
    if any(gather_values(ran_out)):
        free_memory()
        raise DoesNotFit(
            "The optimiser takes more memory than there is: lower lora_rank, or take a smaller base or more GPUs"
        )


def memory_mb(device: str) -> float:
    """Return the memory in MiB: the GPU's maximum so far, or that of this process now."""
    if device == "cuda":
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return round(int(psutil.Process().memory_info().rss) / 2**20, 1)
