"""The processes of a training: the first starts the others, on the same module."""

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
# Of the first process to end by itself after another: perhaps for the same reason.
PATIENCE_S = 20.0


@contextmanager
def share_training(folder: Path, size: int, device: str, program: Sequence[str] = ()) -> Iterator[None]:
    """Context manager that starts and joins `size` processes, each with the GPU of its number among the job's.

    transformers and accelerate read the same variables as here, and take the group that is there.
    """
    if size == 1:
        yield
        return
    children: list[Popen[str]] = []
    over = threading.Event()
    # The host's own name cannot be looked up in many containers.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if "RANK" not in os.environ:
        # All processes are on one machine, so they meet on the loopback.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
        command = [sys.executable, *(program or ("-m", "training.trainer", str(folder)))]
        for rank in range(1, size):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            children.append(spawn_child(command, {**os.environ, **meeting, **place}))
        os.environ.update({**meeting, "RANK": "0", "LOCAL_RANK": "0"})
        # A thread, since the main one may be blocked in a collective operation.
        threading.Thread(target=_end_with, args=(children, over), daemon=True).start()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Objects go over gloo, gradients on a GPU over NCCL.
    dist.init_process_group("cuda:nccl,cpu:gloo" if device == "cuda" else "gloo")
    try:
        yield
    finally:
        over.set()
        dist.destroy_process_group()
        stop_children(children)
        # Only who set the variables takes them away.
        if children:
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                os.environ.pop(name, None)


def _end_with(children: Sequence[Popen[str]], over: threading.Event) -> None:
    """End this process when another has ended: it would wait for its gradients for ever."""
    while not over.wait(LOOK_S):
        if any(child.poll() is not None for child in children):
            if not over.wait(PATIENCE_S):
                print("one of the processes that share this training ended", file=sys.stderr, flush=True)  # noqa: T201
                stop_children(children)
                # `os._exit`: a process blocked in a collective cannot end in an orderly way.
                os._exit(1)
            return


def place_in_world() -> tuple[int, int]:
    """Return the number of this process and how many share the training."""
    return (int(dist.get_rank()), int(dist.get_world_size())) if dist.is_initialized() else (0, 1)


def is_leading() -> bool:
    """Return whether this process writes metrics, state and checkpoints."""
    return place_in_world()[0] == 0


def gather(value: Any) -> list[Any]:
    """Return the value of every process, in their order."""
    _, size = place_in_world()
    found: list[Any] = [value] * size
    if size > 1:
        dist.all_gather_object(found, value)
    return found


def wait_for_all() -> None:
    """Return once every process is here."""
    if dist.is_initialized():
        gather(None)


def add_gradients(values: Sequence[torch.nn.Parameter], bucket: int = 2**24) -> None:
    """Make each gradient the sum over all processes, in few large messages."""
    if place_in_world()[1] == 1:
        return
    waiting: list[torch.nn.Parameter] = []
    for value in values:
        if value.grad is None:
            # Every process has to bring every gradient, or the sums would belong to other weights.
            value.grad = torch.zeros_like(value)
        waiting.append(value)
        # Buckets of megabytes: a message a weight costs latency, one for all memory.
        if sum(one.numel() for one in waiting) >= bucket:
            _add_bucket(waiting)
            waiting = []
    if waiting:
        _add_bucket(waiting)


def _add_bucket(values: Sequence[torch.nn.Parameter]) -> None:
    grads = [value.grad for value in values if value.grad is not None]
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    for grad, part in zip(grads, torch.split(flat, [grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view_as(grad))
