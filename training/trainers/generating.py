"""What a causal reranker writes after its verdict, greedily: "no", or "yes" with contribution and evidence."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from training.recipes.rendering import RenderedPair
from training.trainers.margins import truncate_ids

BATCH_TOKENS = 8192


def generate_answers(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    max_length: int,
    tail: str,
    max_new_tokens: int = 512,
    batch_tokens: int = BATCH_TOKENS,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[RenderedPair]:
    """The answer to each rendered prompt, without special tokens, in the order given; greedy, so that it repeats.

    Prompts are cut as in margins.py and padded on the left; an answer ends at the end token, or is cut after
    max_new_tokens.
    """
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=_pad_id(tokenizer),
    )
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    rows = [truncate_ids(ids, tokenizer, max_length, tail) for ids in encoded]
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    found = [RenderedPair("")] * len(rows)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (len(rows[order[end]]) + max_new_tokens) * (end + 1 - start) <= batch_tokens:
            end += 1
        chosen = order[start:end]
        for place, answer in zip(
            chosen, _generate_batch(model, tokenizer, [rows[p] for p in chosen], settings), strict=True
        ):
            found[place] = answer
        start = end
        report(start, len(order))
    return found


def _generate_batch(model: Any, tokenizer: Any, rows: list[list[int]], settings: Any) -> list[RenderedPair]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[_pad_id(tokenizer)] * (longest - len(row)) + row for row in rows], device=model.device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=model.device)
    with torch.inference_mode():
        written = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, use_cache=True)
    answers = written[:, longest:]
    ended = (answers == tokenizer.eos_token_id).any(dim=1).tolist()
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    return [RenderedPair(str(text), is_cut=not end) for text, end in zip(texts, ended, strict=True)]


def _pad_id(tokenizer: Any) -> int:
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id)
