"""Huge pages for what a process has loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
from pathlib import Path
from config.memory import collapse
kept = [bytes(1000) for _ in range(40_000)]
made = collapse()
line = next(line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "AnonHugePages" in line)
assert kept[::1000] == [bytes(1000)] * 40
print(made, line.split()[1])
"""


def test_what_a_process_has_loaded_comes_to_lie_in_huge_pages():
    modes = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not modes.exists() or "[never]" in modes.read_text():
        pytest.skip("this kernel gives no huge pages")
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    made, kilobytes = map(int, done.stdout.split())
    if not made:
        pytest.skip("this kernel has no huge page to give now")
    assert kilobytes >= 2048 * made
