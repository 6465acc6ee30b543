"""RTriever's loss: in-batch negatives with cached gradients, false negatives counted or masked (BRIGHT-Pro 5.2)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim, get_rank
from torch import Tensor

from training.recipes.bundles import Bundle, Passage
from training.trainers.processes import gather_values


class RanOutElsewhere(RuntimeError):
    """Another process of the training ran out of memory in this step, so all of them repeat it."""


MINI_BATCH = 64  # Queries whose similarities with all documents of the batch are in memory at the same time.


class InBatchLoss(CachedMultipleNegativesRankingLoss):
    """The mean over queries of -log softmax over all documents of the batch, including those of other processes.

    Labels have the shape (queries, 3): the indices of a bundle, of its drawn positive and of its drawn negative, which
    is in the batch only if the features have a third column. A
    positive of a query that is in the batch for another query is a false negative; these are counted, and left out of
    the softmax if `mask` is set. `note` is called with the metrics of each step. `token_budget`, the tokens embedded at
    a time, affects memory but not the gradient.
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
            # The library multiplies by a scale, papers divide by a temperature.
            scale=1 / temperature,
            mini_batch_size=MINI_BATCH,
            mini_batch_num_tokens=token_budget,
            gather_across_devices=across_processes,
        )
        self.bundles, self.mask, self.note = bundles, mask, note
        self.chunks = self.replayed = 0  # The passes of this step without gradients, and with them.

    def forward(self, sentence_features: Any, labels: Tensor) -> Tensor:
        features = list(sentence_features)
        self.chunks = self.replayed = 0
        tokens = sum(int(feature["attention_mask"].sum()) for feature in features)
        loss: Tensor = super().forward(features, labels)
        self.note(tokens=tokens, chunks=self.chunks)
        return loss

    def embed_minibatch(
        self, sentence_feature: Any, begin: int, end: int, with_grad: bool, *rest: Any, **more: Any
    ) -> Any:
        # Every chunk is embedded first without a gradient, and again with one.
        self.chunks += not with_grad
        self.replayed += with_grad
        if with_grad and self.replayed == self.chunks:
            agree_on_memory(False)  # The last chunk adds up the gradients of all processes.
        return super().embed_minibatch(sentence_feature, begin, end, with_grad, *rest, **more)

    def calculate_loss(self, reps: Any, labels: Tensor | None = None, *, with_backward: bool = False) -> Tensor:
        assert labels is not None
        agree_on_memory(False)  # From here on each process needs the vectors of the others.
        own_labels, all_labels = labels.tolist(), labels.tolist()
        if self.gather_across_devices:
            gathered = [torch.zeros_like(labels) for _ in range(torch.distributed.get_world_size())]
            torch.distributed.all_gather(gathered, labels)
            all_labels = torch.cat(gathered).tolist()
        # The vectors of all processes are concatenated, those of this process begin at column `offset`.
        offset = get_rank() * len(own_labels) if self.gather_across_devices else 0
        false_negatives = find_false_negatives(self.bundles, own_labels, all_labels, offset).to(labels.device)
        has_negatives = len(reps) > 2
        if not has_negatives:
            false_negatives = false_negatives[:, : len(all_labels)]
        scored, hits, positive_sum, negative_sum = 0, 0, 0.0, 0.0

        def similarity(queries: Tensor, documents: Tensor) -> Tensor:
            nonlocal scored, hits, positive_sum, negative_sum
            similarities = cos_sim(queries, documents)
            rows = torch.arange(len(queries), device=similarities.device)
            positives = rows + scored + offset
            mask, values = false_negatives[scored : scored + len(queries)], similarities.detach()
            hits += int((values.argmax(dim=1) == positives).sum())
            positive_sum += float(values[rows, positives].sum())
            # The columns of all negatives follow those of all positives.
            negative_sum += float(values[rows, positives + len(all_labels)].sum()) if has_negatives else 0.0
            scored += len(queries)
            # A similarity of -inf contributes nothing to the softmax.
            return similarities.masked_fill(mask, -torch.inf) if self.mask else similarities

        # The library calls it for each mini-batch of queries, so the sums are over all calls.
        self.loss.similarity_fct = similarity
        try:
            loss: Tensor = super().calculate_loss(reps, labels, with_backward=with_backward)
        finally:
            self.loss.similarity_fct = cos_sim
        self.note(
            in_batch_accuracy=round(hits / len(own_labels), 6),
            positive_similarity=round(positive_sum / len(own_labels), 6),
            **({"negative_similarity": round(negative_sum / len(own_labels), 6)} if has_negatives else {}),
            false_negatives=int(false_negatives.sum()),
        )
        return loss


def agree_on_memory(ran_out: bool) -> None:
    """Tell the other processes whether memory ran out in this one. Raises RanOutElsewhere if it did in another."""
    if any(gather_values(ran_out)) and not ran_out:
        raise RanOutElsewhere


def find_false_negatives(
    bundles: Sequence[Bundle],
    own_labels: Sequence[Sequence[int]],
    all_labels: Sequence[Sequence[int]],
    offset: int = 0,
) -> Tensor:
    """Return the false negatives of each query, a boolean tensor (own queries, 2 x all queries).

    Its columns are the positives of all queries and then their negatives. `own_labels` are those of `all_labels` from
    `offset` on; for their contents see InBatchLoss.
    """
    documents: list[Passage] = [bundles[bundle].positives[positive] for bundle, positive, _negative in all_labels]
    documents += [bundles[bundle].negatives[negative] for bundle, _positive, negative in all_labels]
    columns: dict[str, list[int]] = defaultdict(list)
    for column, passage in enumerate(documents):
        for name in passage.names:
            columns[name].append(column)
    false_negatives = torch.zeros(len(own_labels), len(documents), dtype=torch.bool)
    for query, (bundle, *_drawn) in enumerate(own_labels):
        for passage in bundles[bundle].positives:
            for name in passage.names:
                false_negatives[query, columns.get(name, [])] = True
        # Except the query's drawn positive, which is the numerator of the loss.
        false_negatives[query, offset + query] = False
    return false_negatives
