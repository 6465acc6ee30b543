"""Raw fp32 margins by plain transformers: the slow, independent scoring that published folders are held to."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

BATCH_TOKENS = 8192


def causal_margins(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    yes_id: int,
    no_id: int,
    max_length: int,
    tail: str,
    batch_tokens: int = BATCH_TOKENS,
) -> list[float]:
    """l_yes - l_no at the last position of each rendered prompt, in the order given.

    A prompt of more than max_length tokens loses the end of its document; `tail`, what follows the document, stays.
    Batches are sorted by length and padded on the right, where a causal model does not look.
    """
    encoded = [truncate_ids(ids, tokenizer, max_length, tail) for ids in _token_ids(tokenizer, texts)]

    def score(rows: list[list[int]]) -> list[float]:
        return _causal_batch(model, rows, int(tokenizer.pad_token_id or 0), yes_id, no_id)

    return in_batches(encoded, score, batch_tokens)


def encoder_margins(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[tuple[str, str]],
    *,
    max_length: int,
    batch_tokens: int = BATCH_TOKENS,
) -> list[float]:
    """The one logit of a sequence classifier for each (query, document); the longer of the two is cut first."""
    if not pairs:
        return []
    left, right = [query for query, _ in pairs], [text for _, text in pairs]
    encoded = tokenizer(left, right, truncation="longest_first", max_length=max_length, verbose=False)
    places = [[place] * len(ids) for place, ids in enumerate(encoded["input_ids"])]

    def score(rows: list[list[int]]) -> list[float]:
        chosen = {name: [values[row[0]] for row in rows] for name, values in encoded.items()}
        batch = tokenizer.pad(chosen, return_tensors="pt")
        with torch.inference_mode():
            logits = model(**batch.to(model.device)).logits
        return [float(value) for value in logits.float().reshape(len(rows))]

    return in_batches(places, score, batch_tokens)


def in_batches(
    rows: Sequence[list[int]], score: Callable[[list[list[int]]], list[float]], batch_tokens: int
) -> list[float]:
    """Score rows in batches of similar length, at most batch_tokens after padding; results in the order given."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    found = [0.0] * len(rows)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and len(rows[order[end]]) * (end + 1 - start) <= batch_tokens:
            end += 1
        chosen = order[start:end]
        for place, value in zip(chosen, score([rows[place] for place in chosen]), strict=True):
            found[place] = value
        start = end
    return found


def _token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    return list(tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]) if texts else []


def truncate_ids(ids: list[int], tokenizer: Any, max_length: int, tail: str) -> list[int]:
    """At most max_length ids: the end of the document goes, what follows the document stays."""
    if len(ids) <= max_length:
        return ids
    kept = tokenizer(tail, add_special_tokens=False)["input_ids"]
    return [*ids[: max_length - len(kept)], *kept]


def _causal_batch(model: Any, rows: list[list[int]], pad: int, yes_id: int, no_id: int) -> list[float]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=model.device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=model.device)
    last, place = torch.unique(torch.tensor([len(row) - 1 for row in rows]), return_inverse=True)
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=last.to(model.device), use_cache=False).logits
    own = logits[torch.arange(len(rows)), place].float()
    return [float(value) for value in own[:, yes_id] - own[:, no_id]]
