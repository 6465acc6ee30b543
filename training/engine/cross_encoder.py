"""Recipe `cross-encoder`: an encoder with one logit, for people without a large GPU (DESIGN 9).

Losses: `bce` on labels, `mse` on teacher scores, `lambda` on the list of a query. One feature is what must stay
together in a batch: a pair, or for `lambda` a query with its documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from corpus.errors import BadInput
from training.engine.margins import encoder_margins
from training.engine.ranking_losses import bce, lambda_loss, mse

Loss = Literal["bce", "mse", "lambda"]
LOSSES: tuple[Loss, ...] = ("bce", "mse", "lambda")


@dataclass(frozen=True)
class Feature:
    """Encoded pairs that share a batch, with what each should score (0..1); `tokens` is its share of the budget."""

    rows: list[dict[str, list[int]]]
    targets: list[float]

    @property
    def tokens(self) -> int:
        """All tokens of all pairs."""
        return sum(len(row["input_ids"]) for row in self.rows)

    @property
    def longest(self) -> int:
        """The longest pair, which decides the padding."""
        return max(len(row["input_ids"]) for row in self.rows)


def features(
    examples: Sequence[Any], tokenizer: Any, *, loss: Loss, max_length: int, documents: int = 16
) -> list[Feature]:
    """One feature a pair, or for `lambda` one a query: at most `documents` of it, those with the highest target first.

    Targets: the label, else the teacher's score (`bce`, `lambda`); the teacher's score, else the label (`mse`).
    Raises BadInput when a row has neither, or when `lambda` finds no query with two different targets.
    """
    targets = [_target(example, loss) for example in examples]
    encoded = tokenizer(
        [example.query for example in examples],
        [example.document for example in examples],
        truncation="longest_first",
        max_length=max_length,
    )
    rows = [{name: encoded[name][place] for name in encoded} for place in range(len(examples))]
    if loss != "lambda":
        return [Feature([row], [target]) for row, target in zip(rows, targets, strict=True)]
    by_query: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        by_query.setdefault(example.query_id, []).append(place)
    lists = [_best(places, targets, documents) for places in by_query.values()]
    kept = [places for places in lists if len({targets[place] for place in places}) > 1]
    if not kept:
        raise BadInput("the loss lambda needs queries with relevant and not relevant documents; there is none")
    return [Feature([rows[place] for place in places], [targets[place] for place in places]) for places in kept]


def _target(example: Any, loss: Loss) -> float:
    first, second = (example.teacher, example.label) if loss == "mse" else (example.label, example.teacher)
    found = first if first is not None else second
    if found is None:
        raise BadInput(f"query {example.query_id}, document {example.doc_id}: neither label nor teacher score")
    return float(found)


def _best(places: list[int], targets: Sequence[float], documents: int) -> list[int]:
    """Sorted by target only as far as the cut needs it: among equals the file's order stays."""
    return sorted(places, key=lambda place: -targets[place])[:documents]


def collate(chosen: Sequence[Feature], tokenizer: Any, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Right-padded tensors of all pairs, `targets` (n,), and `groups`: how many pairs each feature has."""
    rows = [row for feature in chosen for row in feature.rows]
    padded = tokenizer.pad(rows, padding=True, return_tensors="pt").to(device)
    targets = torch.tensor([target for feature in chosen for target in feature.targets], device=device)
    return {"inputs": dict(padded), "targets": targets, "groups": [len(feature.rows) for feature in chosen]}


def batch_loss(model: Any, batch: dict[str, Any], loss: Loss) -> Tensor:
    """Mean over the features of a batch."""
    logits = model(**batch["inputs"]).logits.reshape(-1)
    if loss == "bce":
        return bce(logits, batch["targets"]).mean()
    if loss == "mse":
        return mse(logits, batch["targets"]).mean()
    parts = zip(logits.split(batch["groups"]), batch["targets"].split(batch["groups"]), strict=True)
    return torch.stack([lambda_loss(scores, wanted) for scores, wanted in parts]).mean()


def dev_margins(model: Any, tokenizer: Any, rows: Sequence[Any], *, max_length: int) -> list[float]:
    """Raw fp32 logits of the dev split, with dropout off."""
    was = model.training
    model.eval()
    found = encoder_margins(model, tokenizer, [(row.query, row.document) for row in rows], max_length=max_length)
    model.train(was)
    return found
