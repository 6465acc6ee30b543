"""The group of processes that share a training: starting them, and exchanging values and gradients between them.

Every process of the group has a rank, and the one with rank 0 is the first process. A training that only one process
runs needs no group; the functions of this module then behave as in a group of one.
"""

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

POLL_INTERVAL_S = 1.0  # Interval at which the first process checks that the others are alive.
# After another process ended, the first one has this time to fail by itself, because both may fail for the same reason.
GRACE_PERIOD_S = 20.0
# The environment variables by which torch, transformers and accelerate find the group.
GROUP_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
BUCKET_SIZE = 2**24  # Number of gradients that one message contains: 64 MiB in fp32.

Value = TypeVar("Value")


@contextmanager
def share_training(folder: Path, size: int, device: str, program: Sequence[str] = ()) -> Iterator[None]:
    """Share the training in the `with` block among `size` processes of this machine.

    If `device` is "cuda", each process uses the GPU of its rank.

    The first process takes all five steps. The processes that it starts call this function too, and take steps 3 and 4.

    1. Start a Python process for each other rank. It runs `program`, by default the trainer of the job's folder.
    2. Watch these processes in a thread.
    3. Join the group, which transformers and accelerate then use as well.
    4. Run the block, and leave the group.
    5. Stop the other processes, even if joining the group or the block failed.
    """
    if size == 1:
        yield
        return
    is_first = "RANK" not in os.environ  # Only the processes that this function starts have a rank already.
    other_processes: list[Popen[str]] = []
    is_training_over = threading.Event()
    try:
        # All processes are on this machine, so gloo uses the loopback interface instead of the address of the host's
        # name, which in many containers cannot be resolved.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if is_first:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))  # If port 0 is requested, the kernel chooses a free one.
                port = str(probe.getsockname()[1])
            group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
            command = [sys.executable, *(program or ("-m", "training.trainer", str(folder)))]
            for rank in range(1, size):
                rank_variables = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                other_processes.append(spawn_child(command, {**os.environ, **group, **rank_variables}))
            os.environ.update({**group, "RANK": "0", "LOCAL_RANK": "0"})
            # In a thread, because the main thread may be blocked while it exchanges values.
            watch_arguments = (other_processes, is_training_over)
            threading.Thread(target=_exit_if_process_ends, args=watch_arguments, daemon=True).start()
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        # Values are exchanged by gloo, and gradients on GPUs by NCCL.
        dist.init_process_group("cuda:nccl,cpu:gloo" if device == "cuda" else "gloo")
        yield
    finally:
        # Set first, so that the thread does not report the processes that are stopped here.
        is_training_over.set()
        try:
            # If joining the group failed, there is none to leave.
            if dist.is_initialized():
                dist.destroy_process_group()
        finally:
            # Only the first process has set the variables by itself.
            if is_first:
                for name in GROUP_VARIABLES:
                    os.environ.pop(name, None)
            stop_children(other_processes)


def _exit_if_process_ends(other_processes: Sequence[Popen[str]], is_training_over: threading.Event) -> None:
    """Wait for the end of the training, but end this process and all others if one of them ends earlier.

    Otherwise this process would wait for ever for what the ended process should send. `other_processes` are in the
    order of their ranks, which begin at 1.
    """
    exit_codes: dict[int, int] = {}
    while not exit_codes:
        if is_training_over.wait(POLL_INTERVAL_S):
            return
        exit_codes = {
            rank: process.returncode for rank, process in enumerate(other_processes, 1) if process.poll() is not None
        }
    # If this process fails for the same reason, its own error is more helpful than the message below.
    if is_training_over.wait(GRACE_PERIOD_S):
        return
    for rank, exit_code in exit_codes.items():
        message = f"Process {rank} of those that share this training ended with exit code {exit_code}."
        print(message, file=sys.stderr, flush=True)  # noqa: T201
    stop_children(other_processes)
    # A main thread that is blocked while it exchanges values would prevent any other exit.
    os._exit(1)


class GroupPosition(NamedTuple):
    """The rank of a process, and the number of processes in its group."""

    rank: int
    size: int


def group_position() -> GroupPosition:
    """Return the position of this process in its group; without a group, it is the only process."""
    if not dist.is_initialized():
        return GroupPosition(rank=0, size=1)
    return GroupPosition(rank=int(dist.get_rank()), size=int(dist.get_world_size()))


def is_first_process() -> bool:
    """Return whether this is the first process of its group, which alone writes metrics, state and checkpoints."""
    return group_position().rank == 0


def gather_values(value: Value) -> list[Value]:
    """Return the values that all processes passed, by rank. Waits until every process has called this function."""
    size = group_position().size
    values = [value] * size
    if size > 1:
        dist.all_gather_object(values, value)
    return values


def wait_for_all_processes() -> None:
    """Wait until every process has called this function."""
    gather_values(None)


def sum_gradients(weights: Sequence[torch.nn.Parameter], bucket_size: int = BUCKET_SIZE) -> None:
    """Replace the gradient of each weight with the sum of its gradients in all processes.

    Every process must pass the same weights in the same order. Gradients are exchanged in buckets of about
    `bucket_size` numbers, because a message for each weight would be slow, and one for all would need much memory.
    """
    if group_position().size == 1:
        return
    bucket: list[torch.Tensor] = []
    for weight in weights:
        if weight.grad is None:
            # Each process must send a gradient for each weight, or gradients of different weights would be added.
            weight.grad = torch.zeros_like(weight)
        bucket.append(weight.grad)
        if sum(gradient.numel() for gradient in bucket) >= bucket_size:
            _sum_bucket(bucket)
            bucket = []
    if bucket:
        _sum_bucket(bucket)


def _sum_bucket(gradients: Sequence[torch.Tensor]) -> None:
    """Replace each gradient with its sum over all processes, by a single message."""
    message = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(message)
    gradient_sums = torch.split(message, [gradient.numel() for gradient in gradients])
    for gradient, gradient_sum in zip(gradients, gradient_sums, strict=True):
        gradient.copy_(gradient_sum.view_as(gradient))
