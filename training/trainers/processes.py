"""The processes that share a training: starting them, and exchanging values and gradients."""

import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import torch
import torch.distributed as dist

from jobs.processes import spawn_child, stop_children

LOOK_S = 1.0
# The time that the first process has to end by itself after another one, perhaps for the same reason.
PATIENCE_S = 20.0


@contextmanager
def share_training(folder: Path, size: int, device: str, program: Sequence[str] = ()) -> Iterator[None]:
    """Start the other processes of a training and join their group; each uses the job's GPU of its rank.

    transformers and accelerate read the environment variables that are set here, and use the same group.
    """
    if size == 1:
        yield
        return
    children: list[Popen[str]] = []
    is_over = threading.Event()
    # In many containers the host's name cannot be resolved.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if "RANK" not in os.environ:
        # All processes are on one machine, so they use the loopback interface.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
        command = [sys.executable, *(program or ("-m", "training.trainer", str(folder)))]
        for rank in range(1, size):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            children.append(spawn_child(command, {**os.environ, **group, **ranks}))
        os.environ.update({**group, "RANK": "0", "LOCAL_RANK": "0"})
        # In a thread, since the main thread may be blocked in a collective operation.
        threading.Thread(target=_end_with, args=(children, is_over), daemon=True).start()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Objects are exchanged by gloo, gradients on GPUs by NCCL.
    dist.init_process_group("cuda:nccl,cpu:gloo" if device == "cuda" else "gloo")
    try:
        yield
    finally:
        is_over.set()
        dist.destroy_process_group()
        stop_children(children)
        # The process that set the variables removes them.
        if children:
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                os.environ.pop(name, None)


def _end_with(children: Sequence[Popen[str]], is_over: threading.Event) -> None:
    """End this process when another one has ended, since it would wait for that one's gradients for ever."""
    while not is_over.wait(LOOK_S):
        if any(child.poll() is not None for child in children):
            if not is_over.wait(PATIENCE_S):
                print("one of the processes that share this training ended", file=sys.stderr, flush=True)  # noqa: T201
                stop_children(children)
                # `os._exit`, since a process that is blocked in a collective operation cannot exit otherwise.
                os._exit(1)
            return


def rank_and_size() -> tuple[int, int]:
    """Return the rank of this process, and the number of processes that share the training."""
    return (int(dist.get_rank()), int(dist.get_world_size())) if dist.is_initialized() else (0, 1)


def is_leading() -> bool:
    """Return whether this process writes metrics, state and checkpoints."""
    return rank_and_size()[0] == 0


def gather(value: Any) -> list[Any]:
    """Return the values of all processes, by rank."""
    _rank, size = rank_and_size()
    values: list[Any] = [value] * size
    if size > 1:
        dist.all_gather_object(values, value)
    return values


def wait_for_all() -> None:
    """Wait until every process has called this function."""
    if dist.is_initialized():
        gather(None)


def add_gradients(weights: Sequence[torch.nn.Parameter], bucket_size: int = 2**24) -> None:
    """Replace each gradient with the sum over all processes, exchanged in buckets of about `bucket_size` numbers.

    A message for each weight would cost latency, one for all weights would cost memory.
    """
    if rank_and_size()[1] == 1:
        return
    bucket: list[torch.Tensor] = []
    for weight in weights:
        if weight.grad is None:
            # Every process must send every gradient, or the sums would be of different weights.
            weight.grad = torch.zeros_like(weight)
        bucket.append(weight.grad)
        if sum(grad.numel() for grad in bucket) >= bucket_size:
            _add_bucket(bucket)
            bucket = []
    if bucket:
        _add_bucket(bucket)


def _add_bucket(grads: Sequence[torch.Tensor]) -> None:
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    for grad, part in zip(grads, torch.split(flat, [grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view_as(grad))
