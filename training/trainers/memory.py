"""The memory that a training needs, checked before the base is loaded."""

import json
from pathlib import Path
from typing import Any

import psutil
import torch

from corpus.errors import BadInput, QuorumError
from training.trainers.recipe import TrainingTask

# Bytes of a trained weight: the weight, its gradient, and AdamW's two moments, in fp32.
OPTIMISER = 16
CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Weights that no reranker loads: those for images, and heads for multi-token prediction.
LEFT_OUT = ("visual.", "vision_tower.", "vision_model.", "mtp.")


class DoesNotFit(QuorumError):
    """A training needs more memory than there is, even with the smallest token budget."""


def available_memory(device: str) -> int:
    """Return the free bytes of the GPU, or of the machine within its container's limit."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    # The machine's free memory does not take account of a container's limit.
    limits = [int(path.read_text()) for path in CGROUP if path.exists() and path.read_text().strip().isdigit()]
    return min([int(psutil.virtual_memory().available), *limits])


def count_weights(folder: Path) -> int:
    """Return the number of weights that are loaded of a model folder, from the headers of its files."""
    weights = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            # A safetensors file begins with eight bytes of length and a JSON header.
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for name, tensor in header.items():
            if name != "__metadata__" and not any(part in name for part in LEFT_OUT):
                weights += int(torch.Size(tensor["shape"]).numel())
    return weights


def needed_memory(
    task: TrainingTask, config: Any, longest: int, answer: int = 0, *, frozen: int | None = None, copies: int = 0
) -> int:
    """Return a lower bound of the bytes that training needs: weights, optimiser, activations and logits.

    `config`: the text model's; `longest`: tokens of the longest row; `answer`: tokens whose logits are in memory at
    once; `frozen`: bytes of a weight that is not trained, by default those of the task's format; `copies`: further
    copies of all weights, such as a reference model's.
    """
    options, is_half = task.options, task.precision == "bf16"
    frozen = task.dtype.itemsize if frozen is None else frozen
    weights = count_weights(task.base)
    hidden, layers = int(config.hidden_size), int(config.num_hidden_layers)
    wide = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    # Stored states of a token in each layer: with checkpointing only the inputs, else about 12 hidden and 3 wide ones.
    states = hidden * 2 if task.checkpointing else hidden * 12 + 3 * wide
    # And the logits of the answer with their gradient, in fp32.
    activations = longest * layers * states * (2 if is_half else 4) + answer * int(config.vocab_size) * 4 * 2
    activations += weights * copies * task.dtype.itemsize
    if not options.lora_rank:
        return weights * OPTIMISER + activations
    # LoRA's two matrices for each linear layer: four of attention, three of the feed-forward network.
    adapter = options.lora_rank * layers * (8 * hidden + 3 * (hidden + wide))
    return weights * frozen + adapter * OPTIMISER + activations


def finishing_memory(task: TrainingTask) -> int:
    """Return a lower bound of the bytes that finishing needs: one copy of all weights in fp32."""
    return count_weights(task.base) * 4


def check_memory(task: TrainingTask, config: Any, longest: int, answer: int = 0, **more: Any) -> None:
    """Raise BadInput if there is too little memory for training or finishing; `more`: arguments of needed_memory."""
    # The limit of the task replaces the machine's free memory.
    free = available_memory(task.device) if task.memory_mb is None else int(task.memory_mb * 2**20)
    needs = {"training": needed_memory(task, config.get_text_config(), longest, answer, **more)}
    finishing = finishing_memory(task)
    # A model that does not fit on the GPU is finished on the CPU.
    if task.device == "cpu" or finishing > available_memory("cpu"):
        needs["publishing"] = finishing
    name, need = max(needs.items(), key=lambda item: item[1])
    if need > free:
        raise BadInput(
            f"This {name} needs at least {need / 2**30:.2f} GiB of {'GPU ' if task.device == 'cuda' else ''}memory "
            f"and {free / 2**30:.2f} GiB are free: take a smaller base, a smaller max_length or lora_rank, "
            "or a machine with more"
        )
