"""Recipe `cross-encoder`: an encoder with one logit, by sentence-transformers' trainer and losses.

Losses: `bce` on labels, `mse` on teacher scores ((sigmoid(logit) - teacher)^2, as Prism's term),
`lambda` on the list of a query (LambdaRank's weights). A row of the training is a pair, or with
`lambda` a query and its documents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import (
    BinaryCrossEntropyLoss,
    LambdaLoss,
    LambdaRankScheme,
    MSELoss,
)
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer

from corpus.errors import BadInput
from training.published.base import measuring
from training.published.encoder import EncoderTrained, load_encoder, longest_input
from training.published.margins import encode_pairs, encoder_margins, pad_encoded
from training.published.tokens import EncodedRow
from training.recipes.job_folder import JobFolder
from training.trainers.callback import JobCallback
from training.trainers.memory import check_memory
from training.trainers.recipe import TrainingTask
from training.trainers.steps import WholeSteps
from training.trainers.token_tables import TokenRows, list_lengths, tokenize_rows

DOCUMENTS = 16  # Of a query's list, those with the highest targets.


@dataclass(frozen=True)
class TrainingRow:
    """A row that a pass keeps together: pairs of one query, the score each should get (0..1), and their tokens."""

    places: list[int]  # Of the pairs in the training split.
    targets: list[float]
    tokens: int

    @property
    def ordered_pairs(self) -> int:
        """The number of pairs of documents that have an order to learn."""
        return sum(one > other for one in self.targets for other in self.targets)


class PreparedCrossEncoder(CrossEncoder):
    """sentence-transformers' model, whose losses give it places of tokenized pairs."""

    prepared: Sequence[EncodedRow]

    def preprocess(self, inputs: Any, *_rest: Any, **_named: Any) -> dict[str, Any]:
        """Return a batch of pairs: the second of each input is its place."""
        return dict(pad_encoded(self.tokenizer, [self.prepared[place] for _, place in inputs]))


def build_rows(
    examples: Sequence[Any], sizes: Sequence[int], *, loss: str, documents: int = DOCUMENTS
) -> list[TrainingRow]:
    """Build one row a pair, or for `lambda` one a query: at most `documents` of it, the highest targets first.

    sizes: the tokens of each pair. Targets: the label, else the teacher's score (`bce`, `lambda`);
    the teacher's score, else the label (`mse`). Raises BadInput when a row has neither, or when
    `lambda` finds no query with two different targets.
    """
    targets = [_training_target(example, loss) for example in examples]
    places = [[place] for place in range(len(examples))]
    if loss == "lambda":
        by_query: dict[str, list[int]] = {}
        for place, example in enumerate(examples):
            by_query.setdefault(example.query_id, []).append(place)
        # Among equal targets the file's order stays: the sort is stable.
        lists = [sorted(several, key=lambda place: -targets[place])[:documents] for several in by_query.values()]
        # A list of equal targets has no order to learn.
        places = [several for several in lists if len({targets[place] for place in several}) > 1]
        if not places:
            raise BadInput("The loss lambda needs queries with relevant and not relevant documents; there is none")
    return [
        TrainingRow(several, [targets[place] for place in several], sum(sizes[place] for place in several))
        for several in places
    ]


def _training_target(example: Any, loss: str) -> float:
    # The loss decides which is wanted first; the other stands in where the set has only that.
    first, second = (example.teacher, example.label) if loss == "mse" else (example.label, example.teacher)
    found = first if first is not None else second
    if found is None:
        raise BadInput(f"Query {example.query_id}, document {example.doc_id}: neither label nor teacher score")
    return float(found)


class StepCrossEncoderTrainer(WholeSteps, CrossEncoderTrainer):  # type: ignore[misc]
    """sentence-transformers' trainer, whose steps are whole."""


class CrossEncoderRecipe:
    """`recipe.Recipe` of an encoder."""

    def __init__(self, task: TrainingTask) -> None:
        options = task.options
        self.task, self.loss = task, options.loss
        self.weights = {self.loss: 1.0}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(task.base)
        self.max_length = longest_input(task.base, self.tokenizer, options.max_length)
        self.pairs = self._tokenized()
        self.rows = build_rows(task.data.train, list_lengths(self.pairs.table, "ids"), loss=self.loss)
        check_memory(task, AutoConfig.from_pretrained(task.base), max(self.lengths()))
        chosen = {} if options.attention == "auto" else {"attn_implementation": options.attention}
        inner = load_encoder(task.base, task.device, seed=options.seed)
        model: Any = PreparedCrossEncoder(
            str(task.base),
            num_labels=1,
            max_length=self.max_length,
            device=task.device,
            model_kwargs={"dtype": torch.float32, **chosen},
        )
        # The head that a base lacks is the one that it is measured with as the base.
        model[0].auto_model.load_state_dict(inner.state_dict())
        model.prepared = self.pairs
        self.model = model.train()

    def _tokenized(self) -> TokenRows:
        """Return all pairs of the training split; `whole`: how many tokens one would have if nothing were cut."""
        examples = self.task.data.train

        def make(number: int) -> dict[str, Any]:
            pair = (examples[number].query, examples[number].document)
            whole, cut = (encode_pairs(self.tokenizer, [pair], max_length=most)[0] for most in (10**9, self.max_length))
            return {"ids": cut.ids, "types": cut.types, "whole": len(whole.ids)}

        table = tokenize_rows(self.task, self.tokenizer, len(examples), make, self.max_length)
        return TokenRows(table, lambda ids, types, whole: EncodedRow(ids, len(ids) < whole, types=types))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.tell_lengths(self.pairs.table["whole"], self.max_length)
        return callback.train(self.trainer(callback))

    def trainer(self, callback: JobCallback) -> Any:
        """Return sentence-transformers' trainer of whole steps."""
        many = self.loss == "lambda"
        columns = {
            "query": list(range(len(self.rows))),
            "document": [row.places if many else row.places[0] for row in self.rows],
            "label": [row.targets if many else row.targets[0] for row in self.rows],
        }
        self.dataset = Dataset.from_dict(columns)
        args = callback.arguments(CrossEncoderTrainingArguments, len(self.rows))
        self.current: Any = StepCrossEncoderTrainer(
            self.model, args, self.dataset, loss=self._library_loss(), callbacks=[callback]
        )
        return self.current.bind(callback, self)

    def _library_loss(self) -> torch.nn.Module:
        if self.loss == "bce":
            return BinaryCrossEntropyLoss(self.model)
        if self.loss == "mse":
            return MSELoss(self.model, activation_fn=torch.nn.Sigmoid())
        # All pairs of a list count, so that by how many a step's sum is divided does not depend on the scores.
        return LambdaLoss(self.model, LambdaRankScheme(), k=None, mini_batch_size=-1)

    def lengths(self) -> list[int]:
        return [row.tokens for row in self.rows]

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """The losses are means over pairs, with `lambda` over pairs of documents of one query."""
        many = self.loss == "lambda"
        return {self.loss: sum(self.rows[row].ordered_pairs for row in rows) if many else len(rows)}

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return the library's loss times its divisor. Weights fp32, bf16 by autocast."""
        inputs = self.current.data_collator([self.dataset[row] for row in rows])
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            loss: Any = self.current.compute_loss(self.model, inputs)
        # A mean times its number is a sum: a step adds up several passes before it divides.
        return {self.loss: loss * self.counts(rows)[self.loss]}

    def dev_margins(self, rows: Sequence[Any]) -> list[float]:
        pairs = [(row.query, row.document) for row in rows]
        with measuring(self.model):
            return encoder_margins(self.model[0].auto_model, self.tokenizer, pairs, max_length=self.max_length)

    def trained(self, checkpoint: Path) -> EncoderTrained:
        task = self.task
        self.current = None
        return EncoderTrained(
            task.base, checkpoint, max_length=self.max_length, device=task.device, seed=task.options.seed
        )

    def record(self) -> dict[str, Any]:
        return {"kind": "encoder", "max_length": self.max_length, "row_lengths": self.row_lengths}
