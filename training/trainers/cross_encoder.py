"""Recipe `cross-encoder`: an encoder with one logit, for people without a large GPU (DESIGN 9).

Losses: `bce` on labels, `mse` on teacher scores, `lambda` on the list of a query. One feature is what must stay
together in a batch: a pair, or for `lambda` a query with its documents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer

from corpus.errors import BadInput
from training.jobs.folder import JobFolder
from training.trainers.callback import place_in_world
from training.trainers.encoder import EncoderTrained, load_encoder, longest_input
from training.trainers.loop import Loop
from training.trainers.margins import encoder_margins
from training.trainers.recipe import TrainingTask
from training.trainers.world import World


@dataclass(frozen=True)
class Feature:
    """Encoded pairs that share a batch, with what each should score (0..1); `tokens` is its share of the budget."""

    rows: list[dict[str, list[int]]]
    targets: list[float]

    @property
    def tokens(self) -> int:
        return sum(len(row["input_ids"]) for row in self.rows)


def build_features(
    examples: Sequence[Any], tokenizer: Any, *, loss: str, max_length: int, documents: int = 16
) -> list[Feature]:
    """One feature a pair, or for `lambda` one a query: at most `documents` of it, those with the highest target first.

    Targets: the label, else the teacher's score (`bce`, `lambda`); the teacher's score, else the label (`mse`).
    Raises BadInput when a row has neither, or when `lambda` finds no query with two different targets.
    """
    targets = [_training_target(example, loss) for example in examples]
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
    # Among equal targets the file's order stays: the sort is stable.
    lists = [sorted(places, key=lambda place: -targets[place])[:documents] for places in by_query.values()]
    kept = [places for places in lists if len({targets[place] for place in places}) > 1]
    if not kept:
        raise BadInput("the loss lambda needs queries with relevant and not relevant documents; there is none")
    return [Feature([rows[place] for place in places], [targets[place] for place in places]) for places in kept]


def _training_target(example: Any, loss: str) -> float:
    first, second = (example.teacher, example.label) if loss == "mse" else (example.label, example.teacher)
    found = first if first is not None else second
    if found is None:
        raise BadInput(f"query {example.query_id}, document {example.doc_id}: neither label nor teacher score")
    return float(found)


def summed_loss(model: Any, chosen: Sequence[Feature], tokenizer: Any, device: str, loss: str) -> Tensor:
    """Return the loss's sum over the features of a batch, in fp32."""
    rows = [row for feature in chosen for row in feature.rows]
    targets = torch.tensor([target for feature in chosen for target in feature.targets], device=device)
    logits = model(**tokenizer.pad(rows, padding=True, return_tensors="pt").to(device)).logits.reshape(-1)
    if loss == "bce":
        return bce_loss(logits, targets).sum()
    if loss == "mse":
        return mse_loss(logits, targets).sum()
    sizes = [len(feature.rows) for feature in chosen]
    lists = zip(torch.split(logits, sizes), torch.split(targets, sizes), strict=True)
    return torch.stack([lambda_loss(scores, wanted) for scores, wanted in lists]).sum()


class CrossEncoder:
    """`recipe.Recipe` of an encoder. A row of the loop is a pair, or with the loss `lambda` a query and its list."""

    def __init__(self, task: TrainingTask) -> None:
        options = task.options
        self.task, self.loss = task, options.loss
        self.weights = {self.loss: 1.0}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(task.base)
        self.max_length = longest_input(task.base, self.tokenizer, options.max_length)
        self.features = build_features(task.data.train, self.tokenizer, loss=self.loss, max_length=self.max_length)
        self.model: Any = load_encoder(task.base, task.device, seed=options.seed).train()
        if task.checkpointing:
            self.model.gradient_checkpointing_enable()

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        return Loop(folder, self.task, self, World(*place_in_world()), asked_to_stop).run()

    def lengths(self) -> list[int]:
        return [feature.tokens for feature in self.features]

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        return {self.loss: len(rows)}

    def forward(self, model: torch.nn.Module, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return the sum of the loss over the rows. Weights stay fp32, bf16 is an autocast."""
        chosen, half = [self.features[row] for row in rows], self.task.precision == "bf16"
        with torch.autocast(self.task.device.split(":")[0], dtype=torch.bfloat16, enabled=half):
            return {self.loss: summed_loss(model, chosen, self.tokenizer, self.task.device, self.loss)}

    def dev_margins(self, rows: Sequence[Any]) -> list[float]:
        was = self.model.training
        self.model.eval()
        pairs = [(row.query, row.document) for row in rows]
        found = encoder_margins(self.model, self.tokenizer, pairs, max_length=self.max_length)
        self.model.train(was)
        return found

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        self.model.load_state_dict(load_file(folder / "model.safetensors", device=self.task.device))

    def trained(self, checkpoint: Path) -> EncoderTrained:
        task = self.task
        return EncoderTrained(
            task.base, checkpoint, max_length=self.max_length, device=task.device, seed=task.options.seed
        )

    def record(self) -> dict[str, Any]:
        return {"kind": "encoder", "max_length": self.max_length}


def bce_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the binary cross-entropy of each logit, (n,) fp32; targets in 0..1, so that soft labels work too."""
    return functional.binary_cross_entropy_with_logits(logits.float(), targets.float(), reduction="none")


def mse_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return (sigmoid(logit) - teacher)^2 of each row, (n,), as Prism's point-wise term."""
    return (torch.sigmoid(logits.float()) - targets.float()) ** 2


def lambda_loss(logits: Tensor, targets: Tensor, k: int = 10) -> Tensor:
    """LambdaRank over one query's list (Burges 2006; the nDCG bound of Wang et al. 2018, "The LambdaLoss framework").

    Every pair with target_i > target_j pays |change of nDCG@k when the two swap| x log2(1 + exp(s_j - s_i)).
    Ranks are those of the current scores; they carry no gradient. A list without such a pair costs 0.
    Returns a scalar.
    """
    scores, wanted = logits.float(), targets.float()
    better = wanted[:, None] > wanted[None, :]
    if not bool(better.any()):
        return scores.sum() * 0.0
    gains = torch.pow(2.0, wanted) - 1.0
    ideal = (gains.sort(descending=True).values * _dcg_discounts(len(gains), k, scores.device)).sum()
    order = torch.argsort(scores.detach(), descending=True, stable=True)
    discounts = torch.empty_like(scores)
    discounts[order] = _dcg_discounts(len(gains), k, scores.device)
    swap = (gains[:, None] - gains[None, :]).abs() * (discounts[:, None] - discounts[None, :]).abs() / ideal
    # log2(1 + e^x) of the score differences, without overflow.
    cost = functional.softplus(scores[None, :] - scores[:, None]) / torch.log(torch.tensor(2.0))
    return (swap.detach() * cost * better).sum()


def _dcg_discounts(count: int, k: int, device: torch.device) -> Tensor:
    places = torch.arange(count, device=device, dtype=torch.float32)
    return torch.where(places < k, 1.0 / torch.log2(places + 2.0), torch.zeros_like(places))
