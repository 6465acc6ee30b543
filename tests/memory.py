"""The memory that a process has held at most."""

from pathlib import Path


def peak_megabytes() -> int:
    """Return the largest resident memory of this process since its program began, in MiB.

    `ru_maxrss` would not do: a child takes it over from its parent, also into another program.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
