"""Recipe `prism-extend`: a reranker of others learns to write and keeps its order (Prism 3.2, "Extension").

The teacher is the base itself, before it is trained and asked with its own prompt; the student is
its adapter, asked with ours. loss = 20 x (sigmoid(margin) - teacher)^2 + cross-entropy of the
target text, as in `prism`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from training.jobs.folder import JobFolder, TrainingCancelled, count_whole_lines, read_lines
from training.recipes.calibration import Calibration
from training.recipes.data import POINT, Example
from training.recipes.rendering import PROMPTS
from training.recipes.table import ExtendOptions
from training.serving.scorer import choose_prompt, is_classifier, make_prompt
from training.trainers.base import check_causal, load_tokenizer, measuring
from training.trainers.causal import LoraTrained
from training.trainers.margins import PromptTokens
from training.trainers.prism import PrismRecipe, PrismRow
from training.trainers.processes import gather, is_leading, place_in_world
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows

TOGETHER = 512  # Pairs that are scored between two lines of progress: what a kill costs.


@dataclass(frozen=True)
class TeacherPrompt:
    """The prompt by which a base is asked in its own template."""

    name: str
    text: str  # With a mark at the place of each text.
    sha256: str
    tokens: PromptTokens


class PrismExtend(PrismRecipe):
    """`recipe.Recipe` of a reranker of others. BadInput for a base without yes and no."""

    needs_teacher = False

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, ExtendOptions)
        self.teacher = open_teacher(task.base, task.options.teacher_prompt)
        # Teaching a reranker its own prompt would change nothing, and look like a result.
        if self.teacher.text == PROMPTS[task.options.prompt].text:
            raise BadInput(
                f"{task.base.name} is asked with the prompt {task.options.prompt} already, which prism-extend "
                "would teach it: take another prompt, another base, or the recipe prism"
            )
        # The scores are not there yet: every row learns the base's score, whatever score it brings.
        train = [replace(row, teacher=None, losses=row.losses | {POINT}) for row in task.data.train]
        super().__init__(replace(task, data=replace(task.data, train=train, teacher="base")))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        self.assign_teacher_scores(folder, asked_to_stop)
        return super().train(folder, asked_to_stop)

    def assign_teacher_scores(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> None:
        """Set every row's teacher score to the base model's own score."""
        data = self.task.data
        scores = self.teacher_scores(folder, asked_to_stop)
        self.rows = TaughtRows(self.rows, scores[: len(data.train)])
        dev = [replace(row, teacher=score) for row, score in zip(data.dev, scores[len(data.train) :], strict=True)]
        self.task = replace(self.task, data=replace(data, dev=dev))

    def teacher_scores(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> list[float]:
        """Return the base's own score of every row, of train and then of dev: asked once and kept in the job."""
        rows = [*self.task.data.train, *self.task.data.dev]
        # The first line says what the scores are of, so that another set or prompt is not mixed in.
        path, first = folder.path / "teacher.jsonl", {"data": self.task.data.sha256, "prompt": self.teacher.sha256}
        lines: list[dict[str, Any]] = []
        # A line that was cut by a kill is not counted and is scored again.
        if count_whole_lines(path):
            head, *lines = read_lines(path)
            if head != first:
                raise BadInput(f"{path.name} has scores of another set or prompt: begin a new job")
        rank, size = place_in_world()
        for begin in range(len(lines), len(rows), TOGETHER):
            # All stop in the same turn: one that went on alone would wait for ever.
            if any(gather(asked_to_stop())):
                raise TrainingCancelled
            if is_leading():
                folder.say(phase=f"scoring with the base: {begin:,} of {len(rows):,} pairs")
            some = rows[begin : begin + TOGETHER]
            # Each process scores every size-th row, and all get all scores.
            shares = gather(self._own_margins(some[rank::size]))
            margins = [shares[place % size][place // size] for place in range(len(some))]
            probability = Calibration().probability
            scored = [
                {
                    "query_id": row.query_id,
                    "doc_id": row.doc_id,
                    "margin": margin,
                    "score": probability(margin),
                }
                for row, margin in zip(some, margins, strict=True)
            ]
            lines += scored
            if is_leading():  # One process writes.
                with path.open("a") as file:
                    beginning = [] if file.tell() else [first]
                    file.writelines(json.dumps(line) + "\n" for line in [*beginning, *scored])
        return [float(line["score"]) for line in lines]

    def _own_margins(self, rows: Sequence[Example]) -> list[float]:
        """Return the base's margins with its own prompt: the model without its adapter."""
        with measuring(self.model), self.model.disable_adapter():
            return self.teacher.tokens.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> "ExtendedTrained":
        one = ExtendedTrained(self.task.base, checkpoint, self.prompt, device=self.task.device)
        one.own = self.teacher.tokens
        return one

    def record(self) -> dict[str, Any]:
        return super().record() | {
            "teacher_prompt": self.teacher.text,
            "teacher_prompt_sha256": self.teacher.sha256,
        }


class TaughtRows(TokenRows):
    """Rows of a table with the scores of a teacher that was asked after they were made."""

    def __init__(self, rows: TokenRows, scores: Sequence[float]) -> None:
        super().__init__(rows.table, rows.kind)
        self.scores = scores

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return replace(found, teacher=self.scores[place]) if isinstance(found, PrismRow) else found


class ExtendedTrained(LoraTrained):
    """`finishing.Trained` whose base has its own prompt: what it could before counts."""

    own: PromptTokens

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        with self.model.disable_adapter():
            return self.own.margins(self.model, self.tokenizer, rows)


def open_teacher(base: Path, wanted: str) -> TeacherPrompt:
    """Return how a base is asked. BadInput without yes and no, or without a prompt."""
    config = check_causal(base)
    # A head gives a score and no words, and the margin between yes and no is what is learned.
    if any(map(is_classifier, getattr(config, "architectures", None) or [])):
        raise BadInput(
            f"{base.name} scores by a head of its own and answers neither yes nor no: name a reranker that "
            "writes its answer"
        )
    name = choose_prompt(base, wanted, "teacher_prompt")
    tokens = make_prompt(base, load_tokenizer(base), name)
    known = PROMPTS.get(name)
    text = known.text if known else tokens.render("{query}", "{document}", "{instruction}")
    return TeacherPrompt(name, text, known.sha256 if known else sha256(text.encode()).hexdigest(), tokens)
