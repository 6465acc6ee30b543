"""Jobs that score: every pair of the folder's pairs.jsonl by each model that was asked for."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training.jobs.folder import JobFolder, TrainingCancelled, read_lines
from training.serving.scorer import Scorer, open_scorer
from training.trainers.base import find_base


def score_pairs(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Write `<name>.scores.jsonl` for each model, one line a query; those that are there stay."""
    job = folder.job
    lines = read_lines(folder.path / "pairs.jsonl")
    models: dict[str, str] = job["models"]
    total, began, words = len(lines) * len(models), time.monotonic(), ""
    for place, (name, where) in enumerate(models.items()):
        folder.say(phase=f"loading {name}", steps=place * len(lines), total=total)
        scorer = open_scorer(find_base(where, folder.path / "bases"), job.get("device") or "cpu")
        words = words or scorer.words
        folder.say(words=scorer.words or words)
        _score_lines(folder, scorer, name, lines, place * len(lines), asked_to_stop)
    pairs = sum(len(line["documents"]) for line in lines)
    seconds = time.monotonic() - began
    return {"queries": len(lines), "pairs": pairs, "models": list(models), "seconds": round(seconds, 2)}


def _score_lines(
    folder: JobFolder, scorer: Scorer, name: str, lines: list[dict[str, Any]], before: int, stop: Callable[[], bool]
) -> None:
    path = folder.path / f"{name}.scores.jsonl"
    # An earlier process may have scored some queries: this one goes on after them.
    done = whole_lines(path)
    with path.open("a") as file:
        for number, line in enumerate(lines[done:], done + 1):
            texts = [one["text"] for one in line["documents"]]
            margins = scorer.margins(line["query"], texts, line["instruction"])
            kept = {
                "query_id": line["query_id"],
                "doc_ids": [one["doc_id"] for one in line["documents"]],
                "margins": margins,
                "probabilities": [scorer.score(margin) for margin in margins],
            }
            file.write(json.dumps(kept) + "\n")
            file.flush()
            folder.say(phase=f"scoring with {name}", steps=before + number)
            if stop():
                raise TrainingCancelled


def whole_lines(path: Path) -> int:
    """Count the lines that a killed process left whole; cut off a torn one."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) != len(data):
        os.truncate(path, len(whole))
    return whole.count(b"\n")
