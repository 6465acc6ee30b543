"""Margins of a query's documents when what they share is computed once: the prompt up to the document.

The strings are tokenised whole, as everybody else does, and the shared part is the longest common run of tokens, so
nothing depends on where a tokenizer cuts. Exact on full attention; what carries a state from token to token is left to
margins.causal_margins.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from training.trainers.margins import BATCH_TOKENS, in_batches, truncate_ids

# In one pass on a CPU, which gains nothing from larger ones: documents of like length pad each other little.
CPU_TOKENS = 1536
LEAST_SHARED = 16  # Tokens from which sharing is worth a pass of its own.


def can_share(config: Any) -> bool:
    """Every layer looks back at all tokens before it, and nothing else."""
    return set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}


def prefixed_margins(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    yes_id: int,
    no_id: int,
    max_length: int,
    tail: str,
    batch_tokens: int | None = None,
) -> list[float]:
    """l_yes - l_no at the end of each rendered prompt of one query, fp32, in the order given."""
    encoded = [
        truncate_ids(ids, tokenizer, max_length, tail)
        for ids in tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    ]
    shared = shared_length(encoded)
    if len(encoded) < 2 or shared < LEAST_SHARED:
        shared = 0
    with torch.inference_mode():
        cache = None
        if shared:
            ids = torch.tensor([encoded[0][:shared]], device=model.device)
            cache = model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        pad = int(tokenizer.pad_token_id or 0)

        def score(rows: list[list[int]]) -> list[float]:
            return _batch_margins(model, rows, shared, cache, pad, yes_id, no_id)

        most = batch_tokens or (CPU_TOKENS if model.device.type == "cpu" else BATCH_TOKENS)
        return in_batches([ids[shared:] for ids in encoded], score, most)


def shared_length(rows: Sequence[list[int]]) -> int:
    """Tokens that all rows begin with, at least one less than the shortest row has."""
    first, last = min(rows), max(rows)
    least = min(len(row) for row in rows) - 1
    for place in range(least):
        if first[place] != last[place]:
            return place
    return max(0, least)


def _batch_margins(
    model: Any, rows: list[list[int]], shared: int, cache: Any, pad: int, yes_id: int, no_id: int
) -> list[float]:
    longest = max(len(row) for row in rows)
    device = model.device
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * (shared + len(row)) + [0] * (longest - len(row)) for row in rows], device=device)
    places = torch.arange(shared, shared + longest, device=device).expand(len(rows), -1)
    ends = torch.tensor([[len(row) - 1] for row in rows], device=device)
    past = None
    if cache is not None:
        past = copy.deepcopy(cache)
        past.batch_repeat_interleave(len(rows))
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=places,
        past_key_values=past,
        use_cache=past is not None,
        logits_to_keep=ends,
    ).logits[:, 0]
    return [float(value) for value in logits[:, yes_id].float() - logits[:, no_id].float()]
