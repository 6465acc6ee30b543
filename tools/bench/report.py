"""The page docs/benchmarks.md: figures as they were printed, with date and machine, without names or paths."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BY_HAND = "\n## "
"""Where the parts begin that are written by hand, below the table."""
SHOWN = ("name", "case", "value", "unit", "aim", "calibration")


def page(figures: list[dict[str, Any]], calibration: dict[str, float]) -> str:
    """The whole page."""
    rows = "\n".join(row(figure) for figure in figures)
    measured = ", ".join(
        f"{value:,} {name.replace('_per_s', '/s').replace('_', ' ')}" for name, value in calibration.items()
    )
    return f"""# Performance figures

Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {machine()}.
Calibration of the same run: {measured}. Ratios are taken within one run; absolute figures are to be read beside the
calibration. What the table lacks, and what other machines gave, stands below it.

| figure | case | value | aim | more |
|---|---|---|---|---|
{rows}
{BY_HAND}{PAGE.read_text().partition(BY_HAND)[2]}"""


def row(figure: dict[str, Any]) -> str:
    """One line of the table."""
    value = figure.get("value")
    shown = "failed" if value is None else f"{value:,} {figure.get('unit', '')}".strip()
    more = "; ".join(f"{key.replace('_', ' ')}: {plain(value)}" for key, value in figure.items() if key not in SHOWN)
    return f"| `{figure['name']}` | {figure.get('case', '')} | {shown} | {figure.get('aim', '')} | {more} |".replace(
        "  ", " "
    )


def plain(value: object) -> str:
    """A value for a cell: nested ones in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(one) for one in value)
    return (
        f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value).replace("|", "/")
    )


def machine() -> str:
    """Cores, memory and Python."""
    pages = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    gigabytes = int(pages.split()[1]) / 1024**2
    system = f"Linux {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {gigabytes:.0f} GB memory, {system}"
