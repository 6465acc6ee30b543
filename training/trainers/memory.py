"""Memory of a training, checked before loading; how torch says there is none."""

import json
from pathlib import Path
from typing import Any

import psutil
import torch

from corpus.errors import BadInput, QuorumError
from training.trainers.recipe import TrainingTask

# Bytes for each trained weight: itself, its gradient, and AdamW's two moments, in fp32.
OPTIMISER = 16
CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Weights that no reranker loads: of pictures, and heads for several tokens.
LEFT_OUT = ("visual.", "vision_tower.", "vision_model.", "mtp.")


class DoesNotFit(QuorumError):
    """A training takes more memory than there is, whatever its token budget."""


def available_memory(device: str) -> int:
    """Return the bytes that a new process may take: of the GPU, or the machine in its limit."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    # A container's limit, which the machine's free memory knows nothing of.
    limits = [int(path.read_text()) for path in CGROUP if path.exists() and path.read_text().strip().isdigit()]
    return min([int(psutil.virtual_memory().available), *limits])


def count_weights(folder: Path) -> int:
    """Return how many weights of a model folder are loaded, from the headers of its files."""
    weights = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            # safetensors: eight bytes of length, then the header as JSON; no weight is read.
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for name, one in header.items():
            if name != "__metadata__" and not any(mark in name for mark in LEFT_OUT):
                weights += int(torch.Size(one["shape"]).numel())
    return weights


def needed_memory(
    task: TrainingTask, config: Any, longest: int, answer: int = 0, *, frozen: int | None = None, copies: int = 0
) -> int:
    """Return a lower bound in bytes of what training takes: weights as they are loaded, what is
    trained with its optimiser, activations of the longest row, logits of so many tokens of an
    answer.

    config: of the text model; frozen: bytes of a weight that is not trained, by default those of
    the task's format; copies: of all weights beside those that are trained, such as a reference.
    """
    options, half = task.options, task.precision == "bf16"
    frozen = task.dtype.itemsize if frozen is None else frozen
    weights = count_weights(task.base)
    hidden, layers = int(config.hidden_size), int(config.num_hidden_layers)
    wide = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    # What is kept of each layer: with checkpointing inputs alone, else about 12 hidden and 3 wide states a token.
    kept = hidden * (2 if task.checkpointing else 12) + (0 if task.checkpointing else 3 * wide)
    # Logits of the answer, and their gradient, in fp32.
    activations = longest * layers * kept * (2 if half else 4) + answer * int(config.vocab_size) * 4 * 2
    activations += weights * copies * task.dtype.itemsize
    if not options.lora_rank:
        return weights * OPTIMISER + activations
    # LoRA's two matrices for each linear layer: four of attention, three feed-forward.
    adapter = options.lora_rank * layers * (8 * hidden + 3 * (hidden + wide))
    return weights * frozen + adapter * OPTIMISER + activations


def finishing_memory(task: TrainingTask) -> int:
    """Return a lower bound in bytes of what finishing takes: one copy of all weights in fp32, as others are freed."""
    return count_weights(task.base) * 4


def check_memory(task: TrainingTask, config: Any, longest: int, answer: int = 0, **more: Any) -> None:
    """Raise BadInput when training or finishing cannot fit, with both numbers; `more`: as needed_memory has it."""
    # What the trainer was given goes before what the machine has free.
    there = available_memory(task.device) if task.memory_mb is None else int(task.memory_mb * 2**20)
    needs = {"training": needed_memory(task, config.get_text_config(), longest, answer, **more)}
    finishing = finishing_memory(task)
    # What does not fit on the GPU is finished on the CPU.
    if task.device == "cpu" or finishing > available_memory("cpu"):
        needs["publishing"] = finishing
    name, need = max(needs.items(), key=lambda item: item[1])
    if need > there:
        raise BadInput(
            f"This {name} needs at least {need / 2**30:.2f} GiB of {'GPU ' if task.device == 'cuda' else ''}memory "
            f"and {there / 2**30:.2f} GiB are free: take a smaller base, a smaller max_length or lora_rank, "
            "or a machine with more"
        )
