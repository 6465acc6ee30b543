"""RTriever's loss: in-batch negatives with cached gradients; false negatives counted, or masked (BRIGHT-Pro 5.2)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim, get_rank
from torch import Tensor

from training.recipes.bundles import Bundle, Passage
from training.trainers.processes import gather


class RanOutElsewhere(RuntimeError):
    """Another process of the training ran out of memory in this step: all of them repeat it."""


SCORED = 64  # Queries whose similarities with all documents of the batch are held at a time.


class InBatchLoss(CachedMultipleNegativesRankingLoss):
    """The mean over queries of -log softmax over all documents of the batch, those of other processes included.

    Labels are (queries, 3): places of the bundle, of its drawn positive and of its drawn negative.
    A document that is a positive of one query and stands in the batch for another is a false
    negative: always counted, without a weight where `mask` is set. `note` is told the figures of
    each step. `token_budget`: tokens embedded at a time, which changes memory and never the
    gradient.
    """

    def __init__(
        self,
        model: Any,
        bundles: Sequence[Bundle],
        *,
        temperature: float,
        token_budget: int | None = None,
        mask: bool = False,
        across_processes: bool = False,
        note: Callable[..., None] = lambda **figures: None,
    ) -> None:
        super().__init__(
            model,
            # The library multiplies by a scale where papers divide by a temperature.
            scale=1 / temperature,
            mini_batch_size=SCORED,
            mini_batch_num_tokens=token_budget,
            gather_across_devices=across_processes,
        )
        self.bundles, self.mask, self.note = bundles, mask, note
        self.chunks = self.replayed = 0  # Passes of this step: without gradients, and with them.

    def forward(self, sentence_features: Any, labels: Tensor) -> Tensor:
        features = list(sentence_features)
        self.chunks = self.replayed = 0
        tokens = sum(int(one["attention_mask"].sum()) for one in features)
        loss: Tensor = super().forward(features, labels)
        self.note(tokens=tokens, chunks=self.chunks)
        return loss

    def embed_minibatch(
        self, sentence_feature: Any, begin: int, end: int, with_grad: bool, *rest: Any, **more: Any
    ) -> Any:
        self.chunks += not with_grad  # The second pass takes the same ones again.
        self.replayed += with_grad
        if with_grad and self.replayed == self.chunks:
            agree(False)  # The last one adds up the gradients of all processes.
        return super().embed_minibatch(sentence_feature, begin, end, with_grad, *rest, **more)

    def calculate_loss(self, reps: Any, labels: Tensor | None = None, *, with_backward: bool = False) -> Tensor:
        assert labels is not None
        agree(False)  # From here on each process needs the others' vectors.
        own, everyone = labels.tolist(), self._gather_labels(labels)
        # This process's queries are the columns from `offset` on, since the vectors of all processes are joined.
        offset = get_rank() * len(own) if self.gather_across_devices else 0
        blocked = find_false_negatives(self.bundles, own, everyone, offset).to(labels.device)
        scored, hits, near, far = 0, 0, 0.0, 0.0

        def similarity(queries: Tensor, documents: Tensor) -> Tensor:
            nonlocal scored, hits, near, far
            found = cos_sim(queries, documents)
            rows = torch.arange(len(queries), device=found.device)
            positive = rows + scored + offset
            part, seen = blocked[scored : scored + len(queries)], found.detach()
            hits += int((seen.argmax(dim=1) == positive).sum())
            near += float(seen[rows, positive].sum())
            # The own negative stands as many columns behind the own positive as there are queries.
            far += float(seen[rows, positive + len(everyone)].sum())
            scored += len(queries)
            # A false negative at -inf has no part in the softmax.
            return found.masked_fill(part, -torch.inf) if self.mask else found

        # The library asks for similarity in parts, so counts go on from call to call.
        self.loss.similarity_fct = similarity
        try:
            loss: Tensor = super().calculate_loss(reps, labels, with_backward=with_backward)
        finally:
            self.loss.similarity_fct = cos_sim
        self.note(
            in_batch_accuracy=round(hits / len(own), 6),
            positive_similarity=round(near / len(own), 6),
            negative_similarity=round(far / len(own), 6),
            false_negatives=int(blocked.sum()),
        )
        return loss

    def _gather_labels(self, labels: Tensor) -> list[list[int]]:
        if not self.gather_across_devices:
            return labels.tolist()
        found = [torch.zeros_like(labels) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(found, labels)
        return torch.cat(found).tolist()


def agree(ran_out: bool) -> None:
    """Tell others whether memory ran out. RanOutElsewhere where it did in one."""
    if any(gather(ran_out)) and not ran_out:
        raise RanOutElsewhere


def find_false_negatives(
    bundles: Sequence[Bundle], own: Sequence[Sequence[int]], everyone: Sequence[Sequence[int]], offset: int = 0
) -> Tensor:
    """Return which documents are false negatives of which query: (own queries, 2 x all queries), bool.

    Columns are the positives of all queries and then their negatives; own: the rows from `offset` on of everyone.
    """
    drawn: list[Passage] = [bundles[row].positives[place] for row, place, _ in everyone]
    drawn += [bundles[row].negatives[place] for row, _, place in everyone]
    columns: dict[str, list[int]] = defaultdict(list)
    for column, passage in enumerate(drawn):
        for name in passage.names:
            columns[name].append(column)
    blocked = torch.zeros(len(own), len(drawn), dtype=torch.bool)
    for place, (row, *_) in enumerate(own):
        for passage in bundles[row].positives:
            for name in passage.names:
                blocked[place, columns.get(name, [])] = True
        # Never its own positive, one of its positives too: the loss needs a numerator.
        blocked[place, offset + place] = False
    return blocked
