"""Raw fp32 margins and answers by plain transformers: what published folders are held to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig

from training.recipes.rendering import RenderedPair
from training.trainers.batching import pack_batches

BATCH_TOKENS = 8192  # Of one forward pass, padding counted.

Found = TypeVar("Found")


@dataclass(frozen=True)
class PromptTokens:
    """How pairs are asked: render(query, document, instruction), the ids of "yes" and "no", the longest input."""

    render: Callable[[str, str, str], str]
    yes_id: int
    no_id: int
    max_length: int

    @property
    def tail(self) -> str:
        """What follows the document, which truncation must keep."""
        mark = "\x00d\x00"
        return self.render("q", mark, "").partition(mark)[2]

    def margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        """Return raw fp32 margins of rows with query, document and instruction."""
        texts = [self.render(row.query, row.document, row.instruction) for row in rows]
        return causal_margins(model, tokenizer, self, texts)


def causal_margins(model: Any, tokenizer: Any, prompt: PromptTokens, texts: Sequence[str]) -> list[float]:
    """Return l_yes - l_no at the last position of each rendered prompt, in the order given."""

    def score(rows: list[list[int]]) -> list[float]:
        # Padded on the right, where a causal model does not look. Logits are computed at the rows' last tokens only:
        # those of all positions, times the vocabulary, would be most of the memory.
        ids, mask = pad_rows(rows, int(tokenizer.pad_token_id or 0), model.device)
        last, place = torch.unique(torch.tensor([len(row) - 1 for row in rows]), return_inverse=True)
        kept = last.to(model.device)
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=kept, use_cache=False).logits
        own = logits[torch.arange(len(rows)), place].float()
        return list((own[:, prompt.yes_id] - own[:, prompt.no_id]).tolist())

    return map_batches(encode_prompts(texts, tokenizer, prompt), score)


def encoder_margins(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_length: int) -> list[float]:
    """Return a sequence classifier's one logit for each (query, document); the longer of the two is cut first."""
    if not pairs:
        return []
    left, right = [query for query, _ in pairs], [text for _, text in pairs]
    encoded = tokenizer(left, right, truncation="longest_first", max_length=max_length, verbose=False)
    # A batch is made by length alone, and then needs all that the tokenizer gave: each row holds its place so often.
    places = [[place] * len(ids) for place, ids in enumerate(encoded["input_ids"])]

    def score(rows: list[list[int]]) -> list[float]:
        chosen = {name: [values[row[0]] for row in rows] for name, values in encoded.items()}
        batch = tokenizer.pad(chosen, return_tensors="pt")
        with torch.inference_mode():
            logits = model(**batch.to(model.device)).logits
        return list(logits.float().reshape(len(rows)).tolist())

    return map_batches(places, score)


def generate_answers(
    model: Any, tokenizer: Any, prompt: PromptTokens, texts: Sequence[str], *, max_new_tokens: int
) -> list[RenderedPair]:
    """Return what a causal reranker writes after each rendered prompt, cut after max_new_tokens, in the order given."""
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


def map_batches(
    rows: Sequence[list[int]],
    act: Callable[[list[list[int]]], Sequence[Found]],
    budget: int = BATCH_TOKENS,
    room: int = 0,
) -> list[Found]:
    """Return what `act` gives for each row, called on batches of similar length; `room`: further tokens of each row."""
    found: dict[int, Found] = {}
    for places in pack_batches([len(row) + room for row in rows], budget):
        found.update(zip(places, act([rows[place] for place in places]), strict=True))
    return [found[place] for place in range(len(rows))]


def pad_rows(rows: Sequence[list[int]], pad: int, device: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """Return token ids and their attention mask, both (rows, longest row)."""
    parts = [torch.tensor(row) for row in rows]
    ids = pad_sequence(parts, batch_first=True, padding_value=pad, padding_side=side)
    mask = pad_sequence([torch.ones_like(part) for part in parts], batch_first=True, padding_side=side)
    return ids.to(device), mask.to(device)


def encode_prompts(texts: Sequence[str], tokenizer: Any, prompt: PromptTokens) -> list[list[int]]:
    """Return the tokens of rendered prompts; one that is too long loses the end of its document, never its tail."""
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    return [truncate_ids(ids, tokenizer, prompt.max_length, prompt.tail) for ids in encoded]


def truncate_ids(ids: list[int], tokenizer: Any, max_length: int, tail: str) -> list[int]:
    """Return at most max_length ids: the end of the document goes, what follows the document stays."""
    if len(ids) <= max_length:
        return ids
    kept = tokenizer(tail, add_special_tokens=False)["input_ids"]
    return [*ids[: max_length - len(kept)], *kept]
