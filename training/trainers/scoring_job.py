"""Jobs that score: every pair of the folder's pairs.jsonl by each model that was asked for."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from training.published.base import find_base
from training.published.opening import open_scorer
from training.published.protocol import ServingRequest
from training.published.scorer import Scorer, read_reranker_json, recorded_prompt
from training.recipes import rendering
from training.recipes.job_folder import JobFolder, TrainingCancelled, count_whole_lines, read_lines


def score_pairs(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Write `<name>.scores.jsonl` for each model, one line a query; those that are there stay."""
    job = folder.job
    lines = read_lines(folder.path / "pairs.jsonl")
    models: dict[str, str] = job["models"]
    total, began, words, cut = len(lines) * len(models), time.monotonic(), "", {}
    for place, (name, where) in enumerate(models.items()):
        folder.update_state(phase=f"loading {name}", steps=place * len(lines), total=total)
        model = find_base(where, folder.path / "bases")
        scorer = open_scorer(
            model,
            job.get("device") or "cpu",
            precision=job.get("precision") or "auto",
            prompt=base_prompt(model, models.values()),
        )
        words = words or scorer.words
        folder.update_state(words=scorer.words or words)
        _score_lines(folder, scorer, name, lines, place * len(lines), asked_to_stop)
        cut[name] = sum(line.get("cut", 0) for line in read_lines(scores_path(folder, name)))
    pairs = sum(len(line["documents"]) for line in lines)
    seconds = time.monotonic() - began
    return {
        "queries": len(lines),
        "pairs": pairs,
        "cut": cut,
        "precision": scorer.precision,
        "models": list(models),
        "seconds": round(seconds, 2),
    }


def base_prompt(model: Path, others: Iterable[str]) -> str:
    """Return the prompt's name for a base compared with a model of ours: that model's."""
    if read_reranker_json(model):
        return ""
    records = [read_reranker_json(Path(other)) for other in others]
    known = [prompt for record in records if (prompt := recorded_prompt(record)) is not None]
    return (known or [rendering.QUORUM])[0].name


def scores_path(folder: JobFolder, name: str) -> Path:
    """Return where a model's scores stand in a job's folder."""
    return folder.path / f"{name}.scores.jsonl"


def _score_lines(
    folder: JobFolder, scorer: Scorer, name: str, lines: list[dict[str, Any]], before: int, stop: Callable[[], bool]
) -> None:
    path = scores_path(folder, name)
    done = count_whole_lines(path)
    with path.open("a") as file:
        for number, line in enumerate(lines[done:], done + 1):
            texts = [one["text"] for one in line["documents"]]
            (scores,) = scorer.score([ServingRequest(line["query"], texts, line["instruction"])])
            kept = {
                "query_id": line["query_id"],
                "doc_ids": [one["doc_id"] for one in line["documents"]],
                "margins": [score.margin for score in scores],
                "probabilities": [scorer.probability(score.margin) for score in scores],
                "cut": sum(score.is_cut for score in scores),
            }
            file.write(json.dumps(kept) + "\n")
            file.flush()
            folder.update_state(phase=f"scoring with {name}", steps=before + number)
            if stop():
                raise TrainingCancelled
