"""Recipe `cross-encoder`: an encoder with one logit, trained with sentence-transformers' trainer and losses.

The losses are `bce` on labels, `mse` on teacher scores ((sigmoid(logit) - teacher)^2, as in Prism), and `lambda` on the
documents of a query (LambdaRank's weights). A training row is a pair, or with `lambda` a query with its documents.
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

DOCUMENTS = 16  # The most documents of a query with the loss `lambda`, those with the highest targets.


@dataclass(frozen=True)
class TrainingRow:
    """A training row: pairs of one query, with their target scores (0..1) and the sum of their tokens."""

    pairs: list[int]  # Their indices in the training split.
    targets: list[float]
    tokens: int

    @property
    def ordered_pairs(self) -> int:
        """The number of pairs of documents with different targets."""
        return sum(higher > lower for higher in self.targets for lower in self.targets)


class PreparedCrossEncoder(CrossEncoder):
    """sentence-transformers' model with pairs that are already tokenised; its inputs contain their indices."""

    prepared: Sequence[EncodedRow]

    def preprocess(self, inputs: Any, *_args: Any, **_kwargs: Any) -> dict[str, Any]:
        """Return a batch of pairs; an input is (query, index of the pair)."""
        return dict(pad_encoded(self.tokenizer, [self.prepared[pair] for _query, pair in inputs]))


def build_rows(
    examples: Sequence[Any], sizes: Sequence[int], *, loss: str, documents: int = DOCUMENTS
) -> list[TrainingRow]:
    """Build a row for each pair, or with `lambda` for each query, with its `documents` highest targets.

    `sizes`: the tokens of each pair. The target is the label with `bce` and `lambda`, the teacher's score with `mse`,
    and the other of the two if that is missing. Raises BadInput if both are missing, or if `lambda` has no query with
    two different targets.
    """
    targets: list[float] = []
    for example in examples:
        label_or_score = (example.teacher, example.label) if loss == "mse" else (example.label, example.teacher)
        target = next((value for value in label_or_score if value is not None), None)
        if target is None:
            raise BadInput(f"Query {example.query_id}, document {example.doc_id}: neither label nor teacher score")
        targets.append(float(target))
    groups = [[pair] for pair in range(len(examples))]
    if loss == "lambda":
        by_query: dict[str, list[int]] = {}
        for pair, example in enumerate(examples):
            by_query.setdefault(example.query_id, []).append(pair)
        # The sort is stable, so pairs with equal targets stay in the order of the file.
        lists = [sorted(pairs, key=lambda pair: -targets[pair])[:documents] for pairs in by_query.values()]
        # Documents with equal targets have no order to learn.
        groups = [pairs for pairs in lists if len({targets[pair] for pair in pairs}) > 1]
        if not groups:
            raise BadInput("The loss lambda needs queries with relevant and not relevant documents; there is none")
    return [
        TrainingRow(pairs, [targets[pair] for pair in pairs], sum(sizes[pair] for pair in pairs)) for pairs in groups
    ]


class StepCrossEncoderTrainer(WholeSteps, CrossEncoderTrainer):  # type: ignore[misc]
    """sentence-transformers' trainer with the steps of WholeSteps."""


class CrossEncoderRecipe:
    """A `recipe.Recipe` for an encoder."""

    def __init__(self, task: TrainingTask) -> None:
        options = task.options
        self.task, self.loss = task, options.loss
        self.weights = {self.loss: 1.0}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(task.base)
        self.max_length = longest_input(task.base, self.tokenizer, options.max_length)
        self.pairs = self._tokenized()
        self.rows = build_rows(task.data.train, list_lengths(self.pairs.table, "ids"), loss=self.loss)
        check_memory(task, AutoConfig.from_pretrained(task.base), max(self.lengths()))
        implementation = {} if options.attention == "auto" else {"attn_implementation": options.attention}
        encoder = load_encoder(task.base, task.device, seed=options.seed)
        model: Any = PreparedCrossEncoder(
            str(task.base),
            num_labels=1,
            max_length=self.max_length,
            device=task.device,
            model_kwargs={"dtype": torch.float32, **implementation},
        )
        # If the base has no head, training starts from the same random head that the base is measured with.
        model[0].auto_model.load_state_dict(encoder.state_dict())
        model.prepared = self.pairs
        self.model = model.train()

    def _tokenized(self) -> TokenRows:
        """Return all pairs of the training split; the column `whole` is the number of tokens before the cut."""
        examples = self.task.data.train

        def make(number: int) -> dict[str, Any]:
            pair = (examples[number].query, examples[number].document)
            (full,) = encode_pairs(self.tokenizer, [pair], max_length=10**9)
            (cut,) = encode_pairs(self.tokenizer, [pair], max_length=self.max_length)
            return {"ids": cut.ids, "types": cut.types, "whole": len(full.ids)}

        table = tokenize_rows(self.task, self.tokenizer, len(examples), make, self.max_length)
        return TokenRows(table, lambda ids, types, whole: EncodedRow(ids, len(ids) < whole, types=types))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.report_lengths(self.pairs.table["whole"], self.max_length)
        return callback.train(self.trainer(callback))

    def trainer(self, callback: JobCallback) -> Any:
        """Return sentence-transformers' trainer with this recipe's rows and loss."""
        has_lists = self.loss == "lambda"
        columns = {
            "query": list(range(len(self.rows))),
            "document": [row.pairs if has_lists else row.pairs[0] for row in self.rows],
            "label": [row.targets if has_lists else row.targets[0] for row in self.rows],
        }
        self.dataset = Dataset.from_dict(columns)
        loss: torch.nn.Module
        if self.loss == "bce":
            loss = BinaryCrossEntropyLoss(self.model)
        elif self.loss == "mse":
            loss = MSELoss(self.model, activation_fn=torch.nn.Sigmoid())
        else:
            # With k=None all pairs of a list count, so that the divisor of a step does not depend on the scores.
            loss = LambdaLoss(self.model, LambdaRankScheme(), k=None, mini_batch_size=-1)
        args = callback.arguments(CrossEncoderTrainingArguments, len(self.rows))
        self.library_trainer: Any = StepCrossEncoderTrainer(
            self.model, args, self.dataset, loss=loss, callbacks=[callback]
        )
        return self.library_trainer.bind(callback, self)

    def lengths(self) -> list[int]:
        return [row.tokens for row in self.rows]

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        """Return the divisor of the loss: the number of pairs, with `lambda` of ordered pairs of documents."""
        if self.loss == "lambda":
            return {self.loss: sum(self.rows[row].ordered_pairs for row in rows)}
        return {self.loss: len(rows)}

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return the library's loss times its divisor. Weights are in fp32, passes may be in bf16 by autocast."""
        inputs = self.library_trainer.data_collator([self.dataset[row] for row in rows])
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            loss: Any = self.library_trainer.compute_loss(self.model, inputs)
        # The mean is turned into a sum, since a step adds up its passes before it divides.
        return {self.loss: loss * self.counts(rows)[self.loss]}

    def dev_margins(self, rows: Sequence[Any]) -> list[float]:
        pairs = [(row.query, row.document) for row in rows]
        with measuring(self.model):
            return encoder_margins(self.model[0].auto_model, self.tokenizer, pairs, max_length=self.max_length)

    def trained(self, checkpoint: Path) -> EncoderTrained:
        task = self.task
        self.library_trainer = None
        return EncoderTrained(
            task.base, checkpoint, max_length=self.max_length, device=task.device, seed=task.options.seed
        )

    def record(self) -> dict[str, Any]:
        return {"kind": "encoder", "max_length": self.max_length, "row_lengths": self.row_lengths}
