"""The processes that share a training: one, or several over gloo (CPU) or NCCL (GPU)."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from jobs.processes import spawn_child, stop_children


@dataclass
class World:
    """One of the processes that share a training."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes metrics, state and checkpoints."""
        return self.rank == 0

    def total(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the sum over all processes of each value."""
        if self.size == 1:
            return dict(values)
        both = torch.tensor(list(values.values()), dtype=torch.float64)
        dist.all_reduce(both)
        return dict(zip(values, both.tolist(), strict=True))

    def any(self, flag: bool) -> bool:
        """Whether a flag is true in any of the processes."""
        return self.total({"flag": float(flag)})["flag"] > 0


@contextmanager
def share_training(folder: Path, size: int, device: str, program: Sequence[str] = ()) -> Iterator[World]:
    """Give the world of a training: the first process starts the others, which run the same module, and ends them."""
    if size == 1:
        yield World()
        return
    rank = int(os.environ.get("QUORUM_RANK", "0"))
    meeting, children = folder / ".meeting", []
    command = [sys.executable, *(program or ("-m", "training.trainer", str(folder)))]
    if rank == 0:
        # A file that a killed training left would let these processes meet ones that are gone.
        meeting.unlink(missing_ok=True)
        for other in range(1, size):
            children.append(spawn_child(command, {**os.environ, "QUORUM_RANK": str(other)}))
    # Gloo would look up the host's own name, which many containers cannot resolve.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=size)
    try:
        yield World(rank, size)
    finally:
        dist.destroy_process_group()
        stop_children(children)
