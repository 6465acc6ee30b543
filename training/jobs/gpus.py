"""The GPUs of a job: one for each process, claimed from those that its worker sees."""

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
    """Return the names of the GPUs that this worker sees, as CUDA_VISIBLE_DEVICES takes them."""
    if not system.NVIDIA_DRIVER.exists():
        return ()
    # Counted in a subprocess: in this process torch would open a CUDA context, keep GPU memory,
    # and be limited to the GPUs that it saw first.
    command = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    count = int(process.stdout.strip() or 0) if process.returncode == 0 else 0
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    # The GPUs of a worker started with 4,5,6,7 have the numbers 4 to 7 in its jobs, too.
    return tuple(names[:count]) if names else tuple(map(str, range(count)))


@contextmanager
def claim_gpus(count: int) -> Iterator[list[str]]:
    """Claim `count` free GPUs of this machine, or none, and yield their names.

    They are released when the context, or its process, ends.
    """
    with ExitStack() as locks:
        claimed: list[str] = []
        # Locks are files in a folder for each machine, since several may share VAR.
        folder = Path(settings.VAR) / "gpus" / socket.gethostname()
        for name in visible_gpus() if count else ():
            folder.mkdir(parents=True, exist_ok=True)
            lock = locks.enter_context((folder / name.replace("/", "-")).open("w"))
            # Raises OSError if another process has the lock, which the kernel releases when that process dies.
            with suppress(OSError):
                if len(claimed) < count:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    claimed.append(name)
        # All or none: two jobs with half of their GPUs each would wait for each other for ever.
        if len(claimed) < count:
            locks.close()
            claimed = []
        yield claimed
