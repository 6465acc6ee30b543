"""What a causal reranker writes after its verdict, greedily: "no", or "yes" with contribution and evidence."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from training.recipes.rendering import RenderedPair
from training.trainers.margins import PromptTokens, encode_prompts, map_batches, pad_rows


def generate_answers(
    model: Any, tokenizer: Any, prompt: PromptTokens, texts: Sequence[str], *, max_new_tokens: int
) -> list[RenderedPair]:
    """Return the answer to each rendered prompt, cut after max_new_tokens, in the order given."""
    end = tokenizer.eos_token_id
    pad = int(end if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
    # Greedy, so that the same model writes the same answer again.
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=max_new_tokens, eos_token_id=end, pad_token_id=pad
    )

    def write(rows: list[list[int]]) -> list[RenderedPair]:
        # Padded on the left: the answer must follow its prompt at once.
        ids, mask = pad_rows(rows, pad, model.device, side="left")
        with torch.inference_mode():
            written = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, use_cache=True)
        answers = written[:, ids.shape[1] :]
        ended = (answers == end).any(dim=1).tolist()
        said = tokenizer.batch_decode(answers, skip_special_tokens=True)
        return [RenderedPair(str(text), is_cut=not whole) for text, whole in zip(said, ended, strict=True)]

    return map_batches(encode_prompts(texts, tokenizer, prompt), write, room=max_new_tokens)
