"""Recipe `prism-extend`: an existing reranker learns to write text and keeps its ranking (Prism 3.2, "Extension").

The teacher is the untrained base with its own prompt, the student is its adapter with ours.
loss = 20 x (sigmoid(margin) - teacher)^2 + cross-entropy of the target text, as in `prism`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from training.published.base import check_causal, load_tokenizer, measuring
from training.published.causal import LoraTrained
from training.published.margins import PromptTokens
from training.published.scorer import choose_prompt, is_classifier, make_prompt
from training.recipes.calibration import Calibration
from training.recipes.data import POINT, Example
from training.recipes.job_folder import JobFolder, TrainingCancelled, count_whole_lines, read_lines
from training.recipes.rendering import PROMPTS
from training.recipes.table import ExtendOptions
from training.trainers.prism import PrismRecipe, PrismRow
from training.trainers.processes import gather_values, group_position, is_first_process
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows

CHUNK = 512  # Pairs scored between two lines of progress: the most that are lost if the process is killed.


@dataclass(frozen=True)
class TeacherPrompt:
    """The prompt of the teacher, in the base's own template."""

    name: str
    text: str  # With placeholders for query, document and instruction.
    sha256: str
    tokens: PromptTokens


class PrismExtend(PrismRecipe):
    """A `recipe.Recipe` for an existing reranker. Raises BadInput for a base that does not answer yes or no."""

    needs_teacher = False

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, ExtendOptions)
        self.teacher = open_teacher(task.base, task.options.teacher_prompt)
        # Teaching a reranker its own prompt would change nothing and look like a result.
        if self.teacher.text == PROMPTS[task.options.prompt].text:
            raise BadInput(
                f"{task.base.name} is asked with the prompt {task.options.prompt} already, which prism-extend "
                "would teach it: take another prompt, another base, or the recipe prism"
            )
        # Every row learns the base's score, which is computed in `train`, whatever score its export has.
        train = [replace(row, teacher=None, losses=row.losses | {POINT}) for row in task.data.train]
        super().__init__(replace(task, data=replace(task.data, train=train, teacher="base")))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        self.assign_teacher_scores(folder, asked_to_stop)
        return super().train(folder, asked_to_stop)

    def assign_teacher_scores(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> None:
        """Set the teacher score of every row to the base's score of it."""
        data = self.task.data
        scores = self.teacher_scores(folder, asked_to_stop)
        self.rows = TaughtRows(self.rows, scores[: len(data.train)])
        dev = [replace(row, teacher=score) for row, score in zip(data.dev, scores[len(data.train) :], strict=True)]
        self.task = replace(self.task, data=replace(data, dev=dev))

    def teacher_scores(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> list[float]:
        """Return the base's score of every training row, then of every dev row.

        The scores are stored in the job's teacher.jsonl, so a resumed job computes only the missing ones.
        """
        rows: list[Example] = [*self.task.data.train, *self.task.data.dev]
        # The first line names the set and the prompt, so that scores of others are not mixed in.
        path, header = folder.path / "teacher.jsonl", {"data": self.task.data.sha256, "prompt": self.teacher.sha256}
        lines: list[dict[str, Any]] = []
        # A line truncated by a kill is not counted, and its row is scored again.
        if count_whole_lines(path):
            first_line, *lines = read_lines(path)
            if first_line != header:
                raise BadInput(f"{path.name} has scores of another set or prompt: begin a new job")
        probability = Calibration().probability
        rank, size = group_position()
        for begin in range(len(lines), len(rows), CHUNK):
            # All processes stop in the same iteration: one that continued alone would wait for ever.
            if any(gather_values(asked_to_stop())):
                raise TrainingCancelled
            if is_first_process():
                folder.update_state(phase=f"scoring with the base: {begin:,} of {len(rows):,} pairs")
            chunk = rows[begin : begin + CHUNK]
            # Each process scores every size-th row, and all get all scores.
            shares = gather_values(self._own_margins(chunk[rank::size]))
            margins = [shares[index % size][index // size] for index in range(len(chunk))]
            chunk_lines = [
                {
                    "query_id": row.query_id,
                    "doc_id": row.doc_id,
                    "margin": margin,
                    "score": probability(margin),
                }
                for row, margin in zip(chunk, margins, strict=True)
            ]
            lines += chunk_lines
            if is_first_process():
                with path.open("a") as file:
                    new_lines = chunk_lines if file.tell() else [header, *chunk_lines]
                    file.writelines(json.dumps(line) + "\n" for line in new_lines)
        return [float(line["score"]) for line in lines]

    def _own_margins(self, rows: Sequence[Example]) -> list[float]:
        """Return the margins of the base, with its own prompt and without the adapter."""
        with measuring(self.model), self.model.disable_adapter():
            return self.teacher.tokens.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> "ExtendedTrained":
        trained = ExtendedTrained(self.task.base, checkpoint, self.prompt, device=self.task.device)
        trained.teacher_tokens = self.teacher.tokens
        return trained

    def record(self) -> dict[str, Any]:
        return super().record() | {
            "teacher_prompt": self.teacher.text,
            "teacher_prompt_sha256": self.teacher.sha256,
        }


class TaughtRows(TokenRows):
    """Rows of a token table, each with a teacher score that was computed later."""

    def __init__(self, rows: TokenRows, scores: Sequence[float]) -> None:
        super().__init__(rows.table, rows.kind)
        self.scores = scores

    def __getitem__(self, index: Any) -> Any:
        row = super().__getitem__(index)
        return replace(row, teacher=self.scores[index]) if isinstance(row, PrismRow) else row


class ExtendedTrained(LoraTrained):
    """A `finishing.Trained` whose base is measured with its own prompt, as it was used before the training."""

    teacher_tokens: PromptTokens

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        with self.model.disable_adapter():
            return self.teacher_tokens.margins(self.model, self.tokenizer, rows)


def open_teacher(base: Path, prompt_name: str) -> TeacherPrompt:
    """Return the prompt of a base. Raises BadInput if it does not answer yes or no, or has no known prompt."""
    config = check_causal(base)
    # The student learns the margin between yes and no, which a model with a scoring head does not have.
    if any(map(is_classifier, getattr(config, "architectures", None) or [])):
        raise BadInput(
            f"{base.name} scores by a head of its own and answers neither yes nor no: name a reranker that "
            "writes its answer"
        )
    name = choose_prompt(base, prompt_name, "teacher_prompt")
    tokens = make_prompt(base, load_tokenizer(base), name)
    prompt = PROMPTS.get(name)
    text = prompt.text if prompt else tokens.render("{query}", "{document}", "{instruction}")
    return TeacherPrompt(name, text, prompt.sha256 if prompt else sha256(text.encode()).hexdigest(), tokens)
