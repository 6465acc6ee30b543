"""python -m tests.full_disk FOLDER: a campaign whose disk is full for a while. Prints one JSON line.

Run it by `unshare -m`: VAR is a tmpfs of 256 MB that only this mount namespace sees, so no other disk is touched.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tests.fault_rig import Rig, rig
from tests.instances import Instance

SIZE_MB = 256
FULL_S = 15.0
PAIRS, BEFORE = 160, 300
WRITE = "SELECT count(*) FROM (SELECT n FROM generate_series(1, 400000) n ORDER BY md5(n::text)) AS sorted"
"""Sorted on disk."""


def fill(var: Path) -> Path:
    """A file that takes all the room there is, to the last byte."""
    ballast = var / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1_000_000, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return ballast


def free(var: Path) -> int:
    found = os.statvfs(var)
    return found.f_bavail * found.f_frsize


def full_for_a_while(site: Rig) -> tuple[float, float, int]:
    """(when the disk became full, when there was room again, how often PostgreSQL could not write meanwhile)."""
    var, began, refused = site.instance.var, time.time(), 0
    ballast = fill(var)
    while time.time() - began < FULL_S:
        with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            file.write(b"\0" * free(var))  # whatever the services gave back is taken, too
        refused += site.ask(WRITE) is None
        time.sleep(0.2)
    ballast.unlink()
    return began, time.time(), refused


def main(folder: Path) -> None:
    var = folder / "var"
    var.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(var)], check=True)
    with rig(Instance(var), folder) as site:
        site.begin("full", PAIRS, calls=BEFORE)
        began, over, refused = full_for_a_while(site)
        outcome = site.outcome("full", began, over, patience=120)
    print(json.dumps({**asdict(outcome), "refused": refused, "holds": outcome.holds}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
