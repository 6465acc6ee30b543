"""Jobs that score the pairs in the folder's pairs.jsonl with each of their models."""

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
    """Write `<name>.scores.jsonl` for each model, resuming earlier work, and return a summary.

    A line has the scores of a query's documents.
    """
    job = folder.job
    lines = read_lines(folder.path / "pairs.jsonl")
    models: dict[str, str] = job["models"]
    total, started_at, words, cut = len(lines) * len(models), time.monotonic(), "", {}
    for index, (name, base) in enumerate(models.items()):
        folder.update_state(phase=f"loading {name}", steps=index * len(lines), total=total)
        model = find_base(base, folder.path / "bases")
        scorer = open_scorer(
            model,
            job.get("device") or "cpu",
            precision=job.get("precision") or "auto",
            prompt=base_prompt(model, models.values()),
        )
        words = words or scorer.words
        folder.update_state(words=scorer.words or words)
        path = folder.path / f"{name}.scores.jsonl"
        _score_lines(folder, scorer, path, lines, index * len(lines), asked_to_stop)
        cut[name] = sum(line.get("cut", 0) for line in read_lines(path))
    return {
        "queries": len(lines),
        "pairs": sum(len(line["documents"]) for line in lines),
        "cut": cut,
        "precision": scorer.precision,
        "models": list(models),
        "seconds": round(time.monotonic() - started_at, 2),
    }


def base_prompt(model: Path, others: Iterable[str]) -> str:
    """Return the name of a base's prompt: that of the first trained model among `others`; "" for a trained model."""
    if read_reranker_json(model):
        return ""
    records = [read_reranker_json(Path(other)) for other in others]
    prompts = [prompt for record in records if (prompt := recorded_prompt(record)) is not None]
    return (prompts or [rendering.QUORUM])[0].name


def _score_lines(
    folder: JobFolder, scorer: Scorer, path: Path, lines: list[dict[str, Any]], before: int, stop: Callable[[], bool]
) -> None:
    """Append the scores of the lines that are not scored yet.

    `before`: the lines that were counted in the job's progress before this model's.
    """
    name = path.name.removesuffix(".scores.jsonl")
    done = count_whole_lines(path)
    with path.open("a") as file:
        for number, line in enumerate(lines[done:], done + 1):
            texts = [document["text"] for document in line["documents"]]
            (scores,) = scorer.score([ServingRequest(line["query"], texts, line["instruction"])])
            scores_line = {
                "query_id": line["query_id"],
                "doc_ids": [document["doc_id"] for document in line["documents"]],
                "margins": [score.margin for score in scores],
                "probabilities": [scorer.probability(score.margin) for score in scores],
                "cut": sum(score.is_cut for score in scores),
            }
            file.write(json.dumps(scores_line) + "\n")
            file.flush()
            folder.update_state(phase=f"scoring with {name}", steps=before + number)
            if stop():
                raise TrainingCancelled
