"""Rollouts of a reinforcement learning as a page shows them: one round and one query at a time (pure).

`rollouts.jsonl` is large, and its lines stand in the order of their steps: a round is found by bisection.
"""

import json
import sys
from bisect import bisect_left
from io import BufferedReader
from pathlib import Path
from typing import Any

FILE = "rollouts.jsonl"


def read_rollouts(path: Path, step: int | None = None, query_id: str = "") -> dict[str, Any] | None:
    """Return the rollouts of a kept round (the last by default) and one of its queries (the first by default).

    By rank, malformed ones last; with them the steps that were kept and the round's queries. None
    where there are none; a step or a query that the file does not have is answered by the default.
    """
    try:
        file = path.open("rb")
    except OSError:
        return None
    with file:
        # Steps whose rollouts were kept, each found behind the one before.
        steps = []
        following = _step_after(file, 0)
        while following is not None:
            steps.append(following)
            following = _step_after(file, _first_offset(file, following + 1))
        if not steps:
            return None
        chosen = step if step in steps else steps[-1]
        rows = []
        line = _read_line_after(file, _first_offset(file, chosen))
        while line.endswith(b"\n") and (row := json.loads(line))["step"] == chosen:
            rows.append(row)
            line = file.readline()
    queries = list(dict.fromkeys(row["query_id"] for row in rows))
    query = query_id if query_id in queries else queries[0]
    own = [row for row in rows if row["query_id"] == query]
    own.sort(key=lambda row: (row["rank"] is None, row["rank"] or 0))
    return {"steps": steps, "step": chosen, "queries": queries, "query_id": query, "rollouts": own}


def _first_offset(file: BufferedReader, step: int) -> int:
    """Return a place behind which the first line of this step or a later one begins."""
    end = file.seek(0, 2)

    def step_behind(offset: int) -> int:
        found = _step_after(file, offset)
        return sys.maxsize if found is None else found

    return bisect_left(range(end), step, key=step_behind)


def _step_after(file: BufferedReader, offset: int) -> int | None:
    """Return the step of the first whole line at or behind a place; None without one."""
    line = _read_line_after(file, offset)
    return int(json.loads(line)["step"]) if line.endswith(b"\n") else None


def _read_line_after(file: BufferedReader, offset: int) -> bytes:
    file.seek(max(0, offset - 1))
    if offset:
        file.readline()
    return file.readline()
