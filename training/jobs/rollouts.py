"""Rollouts of reinforcement learning for a page: one round and one query at a time (pure).

`rollouts.jsonl` is large and its lines are sorted by step, so a round is found by bisection.
"""

import json
import sys
from bisect import bisect_left
from io import BufferedReader
from pathlib import Path
from typing import Any

FILE = "rollouts.jsonl"


def read_rollouts(path: Path, step: int | None = None, query_id: str = "") -> dict[str, Any] | None:
    """Return the rollouts of a stored round (the last by default) and one of its queries (the first by default).

    They are sorted by rank, malformed ones last, and returned with the steps of all stored rounds and the queries of
    this one. An unknown step or query is replaced by the default. None if no rollouts are stored.
    """
    try:
        file = path.open("rb")
    except OSError:
        return None
    with file:
        # The step of each stored round, found from the one before.
        steps = []
        next_step = _step_after(file, 0)
        while next_step < sys.maxsize:
            steps.append(next_step)
            next_step = _step_after(file, _first_offset(file, next_step + 1))
        if not steps:
            return None
        if step not in steps:
            step = steps[-1]
        rows = []
        line = _read_line_after(file, _first_offset(file, step))
        while line.endswith(b"\n") and (row := json.loads(line))["step"] == step:
            rows.append(row)
            line = file.readline()
    queries = list(dict.fromkeys(row["query_id"] for row in rows))
    query = query_id if query_id in queries else queries[0]
    query_rows = [row for row in rows if row["query_id"] == query]
    query_rows.sort(key=lambda row: (row["rank"] is None, row["rank"] or 0))
    return {"steps": steps, "step": step, "queries": queries, "query_id": query, "rollouts": query_rows}


def _first_offset(file: BufferedReader, step: int) -> int:
    """Return an offset after which the first line of this step or a later one begins."""
    end = file.seek(0, 2)
    return bisect_left(range(end), step, key=lambda offset: _step_after(file, offset))


def _step_after(file: BufferedReader, offset: int) -> int:
    """Return the step of the first complete line at or after an offset; sys.maxsize if there is none."""
    line = _read_line_after(file, offset)
    return int(json.loads(line)["step"]) if line.endswith(b"\n") else sys.maxsize


def _read_line_after(file: BufferedReader, offset: int) -> bytes:
    file.seek(max(0, offset - 1))
    if offset:
        file.readline()
    return file.readline()
