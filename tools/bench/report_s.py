"""report_s: seconds and peak memory of a report on 25 generated systems x 3,657 queries x depth 10.

The time is from the claimed row to the stored result, with reading rankings and qrels, all measures, tests and curves.
The peak is that of the process while it makes the report, without the generation of the rows.
"""

import time
from pathlib import Path
from typing import Any

from benchmark.models import Report
from benchmark.report import reports
from tests.large_report import Large, large_report

SYSTEMS, QUERIES = 25, 3_657


def measure() -> list[dict[str, Any]]:
    """Return the figures of a report on two versions of the qrels, and of one on the bounds of a single version."""
    large = large_report(SYSTEMS, QUERIES)
    shape = f"{SYSTEMS} systems x {QUERIES:,} queries x depth 10"
    cases = {shape: large.after, f"bounds of {shape}": large.before}
    return [
        {"name": "report_s", "case": case, **timed(large, after), "unit": "s", "aim": "60 and less, 1 GB"}
        for case, after in cases.items()
    ]


def timed(large: Large, after: Any) -> dict[str, Any]:
    """Return the seconds and the peak memory of one report."""
    Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    started_at = time.perf_counter()
    report: Report = reports.ensure_report(large.collection, large.before, after, large.runs)
    seconds = time.perf_counter() - started_at
    assert report.result is not None
    return {"value": round(seconds, 1), "peak_mb": peak_mb(), "holes": report.result["holes"]}


def peak_mb() -> int:
    """Return the peak memory of this process since the last reset."""
    return memory_mb("VmHWM")


def memory_mb(kind: str = "VmRSS") -> int:
    """Return the memory of this process in MB: now (VmRSS), or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) // 1024
