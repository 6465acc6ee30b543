"""Margins of many queries' documents when what the documents of a query share is computed once for each query.

The strings are tokenised whole, as everybody else does, and the shared part is the longest common
run of tokens, so nothing depends on where a tokenizer cuts. Exact on full attention; what carries a
state from token to token is left to margins.causal_margins.
"""

import copy
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor

from training.published.batching import pack_batches
from training.published.margins import BATCH_TOKENS, AnswerHead, act_in_halves, causal_margins, map_batches, pad_rows
from training.published.tokens import EncodedRow

LEAST_SHARED = 16  # Tokens from which sharing is worth a pass of its own,
MOST_REST = 4  # and how many times as long what follows them may be on average (measured: about 800 tokens).


def can_share(config: Any) -> bool:
    """Return whether rows can share a computed prefix: each layer attends to all earlier tokens and nothing else."""
    return set(getattr(config.get_text_config(), "layer_types", None) or ["full_attention"]) == {"full_attention"}


class Group(NamedTuple):
    """Rows that begin alike: the tokens they share, and their places."""

    ids: list[int]
    places: list[int]


class Rest(NamedTuple):
    """The tokens of a row after the shared ones; `group`: the number of its group."""

    ids: list[int]
    group: int
    place: int


def prefixed_margins(head: AnswerHead, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return l_yes - l_no at the end of each row, fp32, in the order given. Rows of one key share how they begin."""
    alone: list[int] = []
    groups: list[Group] = []
    for _, found in groupby(sorted(range(len(rows)), key=lambda place: rows[place].key), lambda place: rows[place].key):
        places = list(found)
        several = [rows[place].ids for place in places]
        length = shared_length(several) if len(places) > 1 else 0
        # Long documents begin alike, and attention without a mask is the faster one.
        if length < LEAST_SHARED or sum(map(len, several)) > (1 + MOST_REST) * length * len(several):
            alone += places
        else:
            groups.append(Group(rows[places[0]].ids[:length], places))
    margins = dict(zip(alone, causal_margins(head, [rows[place] for place in alone], budget), strict=True))
    for numbers in pack_batches([len(group.ids) for group in groups], budget):
        chosen = [groups[number] for number in numbers]
        margins |= dict(act_in_halves(chosen, partial(_score_groups, head, rows, budget)))
    return [margins[place] for place in range(len(rows))]


def shared_length(rows: Sequence[list[int]]) -> int:
    """Return how many tokens all rows begin with, at least one less than the shortest row has."""
    first, last = min(rows), max(rows)  # Between these two all others lie, so what they share all share.
    least = min(map(len, rows)) - 1
    return next((place for place in range(least) if first[place] != last[place]), max(0, least))


def _score_groups(
    head: AnswerHead, rows: Sequence[EncodedRow], budget: int, groups: list[Group]
) -> list[tuple[int, float]]:
    """Return (place, margin) of all rows of the groups."""
    # Padded on the left, so that what follows a beginning stands at once after it.
    begins, before = pad_rows([group.ids for group in groups], 0, head.device, side="left")
    lengths = before.sum(1, keepdim=True)
    # Positions count real tokens only; padding on the left has position 0.
    places = (before.cumsum(1) - 1).clamp(min=0)
    with torch.inference_mode():
        cache = head.decoder(
            input_ids=begins, attention_mask=before, position_ids=places, use_cache=True
        ).past_key_values

    def score(some: list[Rest]) -> list[float]:
        ids, mask = pad_rows([one.ids for one in some], 0, head.device)
        chosen = torch.tensor([one.group for one in some], device=head.device)
        with torch.inference_mode():
            states = head.decoder(
                input_ids=ids,
                # The cache keeps its left padding, so the mask says which of its keys count.
                attention_mask=torch.cat([before[chosen], mask], dim=1),
                position_ids=lengths[chosen] + torch.arange(ids.shape[1], device=head.device),
                past_key_values=_chosen_rows(cache, chosen),
                use_cache=True,
            ).last_hidden_state
            return head.margins(states[torch.arange(len(some)), mask.sum(1) - 1])

    rest = [
        Rest(rows[place].ids[len(group.ids) :], number, place)
        for number, group in enumerate(groups)
        for place in group.places
    ]
    return list(zip([one.place for one in rest], map_batches(rest, score, budget), strict=True))


def _chosen_rows(cache: Any, rows: Tensor) -> Any:
    """Return a cache of these rows, repeated as named, for a pass to write into."""
    # A shallow copy: layers are replaced below, shared keys stay for the next rows.
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    chosen.batch_select_indices(rows)
    return chosen
