"""Margins of documents with a shared prefix, which is computed once for all documents of a query.

Prompts are tokenised whole, and the prefix is the longest common run of their tokens, so the results do not depend on
where a tokenizer splits. They are exact for full attention; other models are left to margins.causal_margins.
"""

import copy
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import torch

from training.published.batching import pack_batches
from training.published.margins import BATCH_TOKENS, AnswerHead, act_in_halves, causal_margins, map_batches, pad_rows
from training.published.tokens import EncodedRow

LEAST_SHARED = 16  # A shorter prefix is not worth a separate pass,
MOST_REST = 4  # nor is one whose continuations are longer than this many times its length (as measured).


def can_share(config: Any) -> bool:
    """Return whether rows can share a computed prefix, which needs full attention in all layers."""
    return set(getattr(config.get_text_config(), "layer_types", None) or ["full_attention"]) == {"full_attention"}


class Prefix(NamedTuple):
    """The tokens that some rows begin with, and the indices of these rows."""

    ids: list[int]
    rows: list[int]


class Continuation(NamedTuple):
    """The tokens of a row after its prefix, with the indices of the prefix and the row."""

    ids: list[int]
    prefix: int
    row: int


def prefixed_margins(head: AnswerHead, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return l_yes - l_no at the end of each row in fp32, in order. Rows with the same key may share a prefix."""
    single_rows: list[int] = []
    prefixes: list[Prefix] = []
    for _key, group in groupby(sorted(range(len(rows)), key=lambda row: rows[row].key), lambda row: rows[row].key):
        group_rows = list(group)
        sequences = [rows[row].ids for row in group_rows]
        length = 0
        if len(sequences) > 1:
            # The prefix ends before the last token of the shortest sequence. Any sequence lies between the smallest
            # and the largest, so what these two share, all share.
            first, last = min(sequences), max(sequences)
            longest = max(0, min(map(len, sequences)) - 1)
            length = next((position for position in range(longest) if first[position] != last[position]), longest)
        # Sharing needs attention with a mask, which is slower: it does not pay for long continuations.
        if length < LEAST_SHARED or sum(map(len, sequences)) > (1 + MOST_REST) * length * len(sequences):
            single_rows += group_rows
        else:
            prefixes.append(Prefix(sequences[0][:length], group_rows))
    margins = dict(zip(single_rows, causal_margins(head, [rows[row] for row in single_rows], budget), strict=True))
    for batch in pack_batches([len(prefix.ids) for prefix in prefixes], budget):
        batch_prefixes = [prefixes[index] for index in batch]
        margins |= dict(act_in_halves(batch_prefixes, partial(_score_prefixes, head, rows, budget)))
    return [margins[row] for row in range(len(rows))]


def _score_prefixes(
    head: AnswerHead, rows: Sequence[EncodedRow], budget: int, prefixes: list[Prefix]
) -> list[tuple[int, float]]:
    """Return the index and the margin of each row that begins with one of the prefixes."""
    # Padded on the left, so that continuations directly follow their prefixes.
    prefix_ids, prefix_mask = pad_rows([prefix.ids for prefix in prefixes], 0, head.device, side="left")
    lengths = prefix_mask.sum(1, keepdim=True)
    # Positions do not count the padding, which has position 0.
    positions = (prefix_mask.cumsum(1) - 1).clamp(min=0)
    with torch.inference_mode():
        cache = head.decoder(
            input_ids=prefix_ids, attention_mask=prefix_mask, position_ids=positions, use_cache=True
        ).past_key_values

    def score(batch: list[Continuation]) -> list[float]:
        ids, mask = pad_rows([continuation.ids for continuation in batch], 0, head.device)
        selected = torch.tensor([continuation.prefix for continuation in batch], device=head.device)
        # A copy of the cache with the prefix of each continuation. It is shallow: its layers are replaced, and the
        # cache itself stays as it is for the next batch.
        batch_cache = copy.copy(cache)
        batch_cache.layers = [copy.copy(layer) for layer in cache.layers]
        batch_cache.batch_select_indices(selected)
        with torch.inference_mode():
            states = head.decoder(
                input_ids=ids,
                # The cache includes the padding of the prefixes, which the mask excludes.
                attention_mask=torch.cat([prefix_mask[selected], mask], dim=1),
                position_ids=lengths[selected] + torch.arange(ids.shape[1], device=head.device),
                past_key_values=batch_cache,
                use_cache=True,
            ).last_hidden_state
            return head.margins(states[torch.arange(len(batch)), mask.sum(1) - 1])

    continuations = [
        Continuation(rows[row].ids[len(prefix.ids) :], index, row)
        for index, prefix in enumerate(prefixes)
        for row in prefix.rows
    ]
    margins = map_batches(continuations, score, budget)
    return list(zip([continuation.row for continuation in continuations], margins, strict=True))
