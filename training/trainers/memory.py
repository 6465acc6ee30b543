"""What a training needs and what there is, before anything large is loaded."""

from pathlib import Path
from typing import Any

import psutil
import torch

from corpus.errors import BadInput
from training.trainers.recipe import TrainingTask

# Bytes for each trained weight: itself, its gradient, and AdamW's two moments, in fp32.
OPTIMISER = 16
CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def needed_memory(task: TrainingTask, config: Any, longest: int, answer: int) -> int:
    """Bytes, from below: weights, adapter, activations of the longest row, logits of its answer."""
    size = 2 if task.dtype is torch.bfloat16 else 4
    weights = sum(path.stat().st_size for path in task.base.glob("*.safetensors"))
    hidden, layers = int(config.hidden_size), int(config.num_hidden_layers)
    wide = int(getattr(config, "intermediate_size", 4 * hidden))
    rank = task.options.lora_rank
    # A weight is taken for four bytes of its file: a file in half precision counts too low, never too high.
    trained = rank * layers * (8 * hidden + 3 * (hidden + wide)) if rank else weights // 4
    kept = hidden * (2 if task.checkpointing else 12) + (0 if task.checkpointing else 3 * wide)
    logits = answer * int(config.vocab_size) * 4 * 2
    return weights * size // 4 + trained * OPTIMISER + longest * layers * kept * size + logits


def available_memory(device: str) -> int:
    """Bytes that a new process may take: free memory of the GPU, or of the machine within its limit."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    # A container's limit, which the machine's free memory knows nothing of.
    limits = [int(path.read_text()) for path in CGROUP if path.exists() and path.read_text().strip().isdigit()]
    return min([int(psutil.virtual_memory().available), *limits])


def check_memory(task: TrainingTask, config: Any, longest: int, answer: int) -> None:
    """Raises BadInput when the task cannot fit, with both numbers."""
    need = needed_memory(task, config, longest, answer)
    there = available_memory(task.device) if task.memory_mb is None else int(task.memory_mb * 2**20)
    if need > there:
        raise BadInput(
            f"this training needs at least {need / 2**30:.2f} GiB of {'GPU ' if task.device == 'cuda' else ''}memory "
            f"and {there / 2**30:.2f} GiB are free: take a smaller base, a smaller max_length or lora_rank, "
            "or a machine with more"
        )
