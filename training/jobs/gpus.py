"""GPUs of a job: one a process, of those its worker sees and no other job holds."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from django.conf import settings

from jobs import system


@cache
def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that this worker may see, by the names that CUDA_VISIBLE_DEVICES takes."""
    if not system.NVIDIA_DRIVER.exists():
        return ()
    # In a process of its own: torch in this one would open a CUDA context, hold memory for good,
    # and keep to the set of GPUs that it saw first.
    asked = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    count = int(done.stdout.strip() or 0) if done.returncode == 0 else 0
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    # Numbers of a worker that was given 4,5,6,7 begin at 4, and stay so for its jobs.
    return tuple(named[:count]) if named else tuple(map(str, range(count)))


@contextmanager
def claim_gpus(count: int) -> Iterator[list[str]]:
    """Claim `count` free GPUs of this machine, or none; they are free again when the claim, or its process, ends."""
    with ExitStack() as held:
        taken: list[str] = []
        # By machine, since VAR may be shared by several.
        folder = Path(settings.VAR) / "gpus" / socket.gethostname()
        for name in visible_gpus() if count else ():
            folder.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context((folder / name.replace("/", "-")).open("w"))
            # Refused where somebody holds it; the kernel frees it when its process dies.
            with suppress(OSError):
                if len(taken) < count:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    taken.append(name)
        # All or none: two jobs that each held half would wait for each other for ever.
        if len(taken) < count:
            held.close()
            taken = []
        yield taken
