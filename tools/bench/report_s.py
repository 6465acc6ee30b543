"""report_s: seconds and peak memory to make a report of 25 systems x 3,657 queries x depth 10, generated.

From the claimed row to the stored result: rankings and qrels read, every measure, tests, letters,
curves, values written. The peak is that of the process while it makes the report, without what
generated the rows.
"""

import time
from pathlib import Path
from typing import Any

from benchmark.models import Report
from benchmark.report import reports
from tests.large_report import Large, large_report

SYSTEMS, QUERIES = 25, 3_657


def measure() -> list[dict[str, Any]]:
    """Of two versions, and of one (how safe the order is)."""
    large = large_report(SYSTEMS, QUERIES)
    shape = f"{SYSTEMS} systems x {QUERIES:,} queries x depth 10"
    cases = {shape: large.after, f"bounds of {shape}": large.before}
    return [
        {"name": "report_s", "case": case, **timed(large, after), "unit": "s", "aim": "60 and less, 1 GB"}
        for case, after in cases.items()
    ]


def timed(large: Large, after: Any) -> dict[str, Any]:
    """Seconds to make one report, and the highest memory meanwhile."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.perf_counter()
    report: Report = reports.ensure_report(large.collection, large.before, after, large.runs)
    seconds = time.perf_counter() - began
    assert report.result is not None
    return {"value": round(seconds, 1), "peak_mb": peak_mb(), "holes": report.result["holes"]}


def peak_mb() -> int:
    """Of this process since the peak was set back."""
    return memory_mb("VmHWM")


def memory_mb(kind: str = "VmRSS") -> int:
    """What this process holds now (VmRSS), or held at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) // 1024
