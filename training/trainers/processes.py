"""Several processes that share a training: starting them, and exchanging values and gradients between them."""

import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple, TypeVar

import torch
import torch.distributed as dist

from jobs.processes import spawn_child, stop_children

POLL_S = 1.0  # Interval at which the first process checks that the others are alive.
# Seconds that the first process has to end by itself after another one ended, perhaps for the same reason.
GRACE_S = 20.0
# torch, transformers and accelerate read these environment variables.
GROUP_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
BUCKET_SIZE = 2**24  # Numbers of a message with gradients: 64 MiB in fp32.

Value = TypeVar("Value")


class GroupPosition(NamedTuple):
    """The rank of a process, from 0, and the number of processes that share its training."""

    rank: int
    size: int


@contextmanager
def share_training(folder: Path, size: int, device: str, program: Sequence[str] = ()) -> Iterator[None]:
    """Share the training in the `with` block among `size` processes on this machine, each with the GPU of its rank.

    The first process runs 1 to 5. The others, which it starts, call this function too, and run 3 and 4.

    1. Start a Python process for each other rank, which runs `program` (by default the trainer of the job's folder).
    2. Watch them in a thread.
    3. Join the group of processes, which transformers and accelerate then use as well.
    4. Run the block, and leave the group.
    5. Stop the other processes, also if joining the group or the block fails.
    """
    if size == 1:
        yield
        return
    is_first = "RANK" not in os.environ
    children: list[Popen[str]] = []
    is_over = threading.Event()
    try:
        # All processes are on this machine, so gloo uses the loopback interface instead of the address of the host's
        # name, which in many containers cannot be resolved.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if is_first:
            group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _find_free_port(), "WORLD_SIZE": str(size)}
            command = [sys.executable, *(program or ("-m", "training.trainer", str(folder)))]
            for rank in range(1, size):
                rank_variables = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                children.append(spawn_child(command, {**os.environ, **group, **rank_variables}))
            os.environ.update({**group, "RANK": "0", "LOCAL_RANK": "0"})
            # In a thread, since the main thread may be blocked in a collective operation.
            threading.Thread(target=_exit_if_child_ends, args=(children, is_over), daemon=True).start()
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        # Objects are exchanged by gloo, gradients on GPUs by NCCL.
        dist.init_process_group("cuda:nccl,cpu:gloo" if device == "cuda" else "gloo")
        yield
    finally:
        # Set first, so that the watcher does not report the children that are stopped here.
        is_over.set()
        try:
            # There is no group to leave if joining it failed.
            if dist.is_initialized():
                dist.destroy_process_group()
        finally:
            # The process that set the variables removes them.
            if is_first:
                for name in GROUP_VARIABLES:
                    os.environ.pop(name, None)
            stop_children(children)


def _find_free_port() -> str:
    """Return the number of a port that nothing uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # With port 0, the kernel chooses a free one.
        return str(probe.getsockname()[1])


def _exit_if_child_ends(children: Sequence[Popen[str]], is_over: threading.Event) -> None:
    """End this process and all children if a child ends before the training is over.

    Otherwise this process would wait for that child's gradients for ever. `children` are in the order of their ranks,
    which begin at 1.
    """
    exit_codes: dict[int, int] = {}
    while not exit_codes:
        if is_over.wait(POLL_S):
            return
        exit_codes = {rank: child.returncode for rank, child in enumerate(children, 1) if child.poll() is not None}
    # If this process fails for the same reason, its own error says more.
    if is_over.wait(GRACE_S):
        return
    for rank, exit_code in exit_codes.items():
        message = f"Process {rank} of those that share this training ended with exit code {exit_code}."
        print(message, file=sys.stderr, flush=True)  # noqa: T201
    stop_children(children)
    # `os._exit`, since a process that is blocked in a collective operation cannot exit otherwise.
    os._exit(1)


def rank_and_size() -> GroupPosition:
    """Return the position of this process in its group; a process without a group is the first of one."""
    if not dist.is_initialized():
        return GroupPosition(0, 1)
    return GroupPosition(int(dist.get_rank()), int(dist.get_world_size()))


def is_leading() -> bool:
    """Return whether this process is the first, which writes metrics, state and checkpoints."""
    return rank_and_size().rank == 0


def gather(value: Value) -> list[Value]:
    """Return the values of all processes, by rank. Every process must call this function, and waits for the others."""
    size = rank_and_size().size
    values = [value] * size
    if size > 1:
        dist.all_gather_object(values, value)
    return values


def wait_for_all() -> None:
    """Wait until every process has called this function."""
    gather(None)


def add_gradients(weights: Sequence[torch.nn.Parameter], bucket_size: int = BUCKET_SIZE) -> None:
    """Replace each gradient with its sum over all processes, which must pass the same weights in the same order.

    The gradients are exchanged in buckets of about `bucket_size` numbers: a message for each weight would cost
    latency, one for all weights would cost memory.
    """
    if rank_and_size().size == 1:
        return
    bucket: list[torch.Tensor] = []
    for weight in weights:
        if weight.grad is None:
            # Every process must send every gradient, or the sums would be of different weights.
            weight.grad = torch.zeros_like(weight)
        bucket.append(weight.grad)
        if sum(gradient.numel() for gradient in bucket) >= bucket_size:
            _add_bucket(bucket)
            bucket = []
    if bucket:
        _add_bucket(bucket)


def _add_bucket(gradients: Sequence[torch.Tensor]) -> None:
    """Replace each gradient with its sum over all processes, exchanged in one message."""
    message = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(message)
    sums = torch.split(message, [gradient.numel() for gradient in gradients])
    for gradient, gradient_sum in zip(gradients, sums, strict=True):
        gradient.copy_(gradient_sum.view_as(gradient))
