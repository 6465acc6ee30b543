"""Job `generate`: what base and tuned model write on the dev split, and the measures of P table 2 and figure 5."""

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
from training.recipes.job_folder import JobFolder, TrainingCancelled, read_lines
from training.recipes.rendering import RenderedPair
from training.trainers.scoring_job import base_prompt

AT_ONCE = 16


def write_outputs(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Write answers and evaluation.json of each model; the latter. Earlier rows stay."""
    job = folder.job
    rows = data.read_training_set(Path(job["data"])).dev
    rows = rows[: int(job["limit"])] if job.get("limit") else rows
    if not rows:
        raise BadInput("The dev split has no row: export with a split below 1")
    models: dict[str, str] = job["models"]
    total = len(rows) * len(models)
    found: dict[str, Any] = {}
    for place, (name, where) in enumerate(models.items()):
        folder.update_state(state="running", phase=f"loading {name}", steps=place * len(rows), total=total)
        model = find_base(where, folder.path / "bases")
        writer = OutputWriter(
            model,
            job.get("device") or "cpu",
            int(job.get("max_new_tokens") or NEW_TOKENS),
            precision=job.get("precision") or "auto",
            prompt=base_prompt(model, models.values()),
        )
        folder.update_state(words=writer.words)
        written = _write_model_outputs(folder, writer, name, rows, place * len(rows), asked_to_stop)
        found[name] = measure_outputs(rows, [line["output"] for line in written], writer.count, words=writer.words)
        found[name]["cut"] = sum(line.get("finish_reason") == "length" for line in written)
    (folder.path / "evaluation.json").write_text(json.dumps(found, indent=1))
    return {"rows": len(rows), "outputs": found}


class OutputWriter:
    """A causal model that goes on writing after its verdict."""

    def __init__(
        self, folder: Path, device: str, max_new_tokens: int, *, precision: str = "auto", prompt: str = ""
    ) -> None:
        check_causal(folder)
        scorer = open_scorer(folder, device, precision=precision, prompt=prompt)
        assert isinstance(scorer, CausalScorer)
        self.scorer, self.most, self.words = scorer, max_new_tokens, scorer.words

    def write(self, rows: Sequence[Example]) -> list[RenderedPair]:
        """Return one answer for each row, greedily."""
        one = self.scorer
        pairs = [(row.query, row.document, row.instruction) for row in rows]
        return generate_answers(
            one.model, one.tokenizer, one.prompt.encode(one.tokenizer, pairs), max_new_tokens=self.most
        )

    def count(self, text: str) -> int:
        """Return the tokens of a text by the model's own tokenizer."""
        return len(self.scorer.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _write_model_outputs(
    folder: JobFolder, writer: OutputWriter, name: str, rows: Sequence[Example], before: int, stop: Callable[[], bool]
) -> list[dict[str, Any]]:
    """Write a line a row, `finish_reason` "length" where cut; return all lines."""
    path = folder.path / f"{name}.outputs.jsonl"
    kept = path.read_text().split("\n")[:-1] if path.exists() else []
    # What a killed process left of a last line is cut off, and its row is written again.
    path.write_text("".join(f"{line}\n" for line in kept))
    with path.open("a") as file:
        for start in range(len(kept), len(rows), AT_ONCE):
            chosen = rows[start : start + AT_ONCE]
            for row, answer in zip(chosen, writer.write(chosen), strict=True):
                line = {"query_id": row.query_id, "doc_id": row.doc_id, "label": row.label, "output": answer.text}
                if answer.is_cut:
                    line["finish_reason"] = "length"
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            # Flushed, so that a kill loses no more than the rows at hand.
            file.flush()
            folder.update_state(phase=f"writing with {name}", steps=before + start + len(chosen))
            if stop():
                raise TrainingCancelled
    return read_lines(path)
