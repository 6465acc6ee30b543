"""The job `generate`: texts of base and tuned model on the dev split, and their measures (Prism table 2, figure 5)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from training.jobs.outputs import measure_outputs
from training.published.base import check_causal, find_base
from training.published.margins import generate_answers
from training.published.opening import open_scorer
from training.published.protocol import NEW_TOKENS
from training.published.scorer import CausalScorer
from training.recipes import data
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder, TrainingCancelled, count_whole_lines, read_lines
from training.recipes.rendering import RenderedPair
from training.trainers.scoring_job import base_prompt

BATCH = 16


def write_outputs(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Write each model's answers and the measures of all in evaluation.json, and return them; resumes earlier work.

    Raises BadInput and TrainingCancelled.
    """
    job = folder.job
    rows = data.read_training_set(Path(job["data"])).dev
    rows = rows[: int(job["limit"])] if job.get("limit") else rows
    if not rows:
        raise BadInput("The dev split has no row: export with a split below 1")
    models: dict[str, str] = job["models"]
    total = len(rows) * len(models)
    evaluation: dict[str, Any] = {}
    for index, (name, base) in enumerate(models.items()):
        folder.update_state(state="running", phase=f"loading {name}", steps=index * len(rows), total=total)
        model = find_base(base, folder.path / "bases")
        writer = OutputWriter(
            model,
            job.get("device") or "cpu",
            int(job.get("max_new_tokens") or NEW_TOKENS),
            precision=job.get("precision") or "auto",
            prompt=base_prompt(model, models.values()),
        )
        folder.update_state(words=writer.words)
        lines = _write_model_outputs(folder, writer, name, rows, index * len(rows), asked_to_stop)
        measures = measure_outputs(rows, [line["output"] for line in lines], writer.count, words=writer.words)
        cut = sum(line.get("finish_reason") == "length" for line in lines)
        evaluation[name] = {**measures, "cut": cut}
    (folder.path / "evaluation.json").write_text(json.dumps(evaluation, indent=1))
    return {"rows": len(rows), "outputs": evaluation}


class OutputWriter:
    """A causal model that writes text after its verdict."""

    def __init__(
        self, folder: Path, device: str, max_new_tokens: int, *, precision: str = "auto", prompt: str = ""
    ) -> None:
        check_causal(folder)
        scorer = open_scorer(folder, device, precision=precision, prompt=prompt)
        assert isinstance(scorer, CausalScorer)
        self.scorer, self.max_new_tokens, self.words = scorer, max_new_tokens, scorer.words

    def write(self, rows: Sequence[Example]) -> list[RenderedPair]:
        """Return a greedy answer to each row."""
        model, tokenizer = self.scorer.model, self.scorer.tokenizer
        pairs = [(row.query, row.document, row.instruction) for row in rows]
        prompts = self.scorer.prompt.encode(tokenizer, pairs)
        return generate_answers(model, tokenizer, prompts, max_new_tokens=self.max_new_tokens)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text by the model's tokenizer."""
        return len(self.scorer.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _write_model_outputs(
    folder: JobFolder, writer: OutputWriter, name: str, rows: Sequence[Example], before: int, stop: Callable[[], bool]
) -> list[dict[str, Any]]:
    """Write a line for each row, with a `finish_reason` "length" if its answer was cut; return all lines.

    `before`: the rows that were counted in the job's progress before this model's.
    """
    path = folder.path / f"{name}.outputs.jsonl"
    # The incomplete last line of a killed process is removed, and its row is written again.
    done = count_whole_lines(path)
    with path.open("a") as file:
        for start in range(done, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            for row, answer in zip(batch, writer.write(batch), strict=True):
                line = {"query_id": row.query_id, "doc_id": row.doc_id, "label": row.label, "output": answer.text}
                if answer.is_cut:
                    line["finish_reason"] = "length"
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            # Flushed, so that a kill loses no more than one batch.
            file.flush()
            folder.update_state(phase=f"writing with {name}", steps=before + start + len(batch))
            if stop():
                raise TrainingCancelled
    return read_lines(path)
