"""The page docs/benchmarks.md: the figures, with the date and a description of the machine."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BY_HAND = "\n## "  # The first heading below the table, from which on the page is written by hand.
SHOWN = ("name", "case", "value", "unit", "aim", "calibration")


def page(figures: list[dict[str, Any]], calibration: dict[str, float]) -> str:
    """Return the whole page."""
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
    """Return a line of the table."""
    value = figure.get("value")
    shown = "failed" if value is None else f"{value:,} {figure.get('unit', '')}".strip()
    more = "; ".join(f"{key.replace('_', ' ')}: {plain(value)}" for key, value in figure.items() if key not in SHOWN)
    return f"| `{figure['name']}` | {figure.get('case', '')} | {shown} | {figure.get('aim', '')} | {more} |".replace(
        "  ", " "
    )


def plain(value: object) -> str:
    """Return a value for a cell, with nested values as a list."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(member)}" for key, member in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(member) for member in value)
    return (
        f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value).replace("|", "/")
    )


def machine() -> str:
    """Return the cores, the memory and the version of Python."""
    pages = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    gigabytes = int(pages.split()[1]) / 1024**2
    system = f"Linux {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {gigabytes:.0f} GB memory, {system}"
