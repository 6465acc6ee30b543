"""Margins of a query's documents when what they share is computed once: the prompt up to the document.

The strings are tokenised whole, as everybody else does, and the shared part is the longest common run of tokens, so
nothing depends on where a tokenizer cuts. Exact on full attention; what carries a state from token to token is left to
margins.causal_margins.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from training.trainers.margins import BATCH_TOKENS, PromptTokens, encode_prompts, map_batches, pad_rows

# In one pass on a CPU, which gains nothing from larger ones: documents of like length pad each other little.
CPU_TOKENS = 1536
LEAST_SHARED = 16  # Tokens from which sharing is worth a pass of its own.


def can_share(config: Any) -> bool:
    """Whether every layer looks back at all tokens before it, and nothing else."""
    return set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}


def prefixed_margins(model: Any, tokenizer: Any, prompt: PromptTokens, texts: Sequence[str]) -> list[float]:
    """Return l_yes - l_no at the end of each rendered prompt of one query, fp32, in the order given."""
    encoded = encode_prompts(texts, tokenizer, prompt)
    shared = shared_length(encoded) if len(encoded) > 1 else 0
    shared = shared if shared >= LEAST_SHARED else 0
    with torch.inference_mode():
        cache = None
        if shared:
            ids = torch.tensor([encoded[0][:shared]], device=model.device)
            cache = model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        pad = int(tokenizer.pad_token_id or 0)

        def score(rows: list[list[int]]) -> list[float]:
            logits = _last_logits(model, rows, shared, cache, pad)
            return list((logits[:, prompt.yes_id].float() - logits[:, prompt.no_id].float()).tolist())

        most = CPU_TOKENS if model.device.type == "cpu" else BATCH_TOKENS
        return map_batches([ids[shared:] for ids in encoded], score, most)


def shared_length(rows: Sequence[list[int]]) -> int:
    """Return how many tokens all rows begin with, at least one less than the shortest row has."""
    first, last = min(rows), max(rows)  # Between these two all others lie, so what they share all share.
    least = min(map(len, rows)) - 1
    return next((place for place in range(least) if first[place] != last[place]), max(0, least))


def _last_logits(model: Any, rows: list[list[int]], shared: int, cache: Any, pad: int) -> torch.Tensor:
    """Return the logits at the last token of each row: (rows, vocabulary). The rows follow the shared tokens."""
    ids, mask = pad_rows(rows, pad, model.device)
    places = torch.arange(shared, shared + ids.shape[1], device=model.device).expand(len(rows), -1)
    ends = torch.tensor([[len(row) - 1] for row in rows], device=model.device)
    past = None
    if cache is not None:
        # A pass writes its own keys into the cache, so each gets a copy.
        past = copy.deepcopy(cache)
        past.batch_repeat_interleave(len(rows))
    logits: torch.Tensor = model(
        input_ids=ids,
        attention_mask=torch.cat([mask.new_ones(len(rows), shared), mask], dim=1),
        position_ids=places,
        past_key_values=past,
        use_cache=past is not None,
        logits_to_keep=ends,
    ).logits
    return logits[:, 0]
