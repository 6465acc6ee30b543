"""Pairs as tokens: control tokens in a text are encoded as plain text, and too long rows lose their document's end."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

# Splits a control token within a text; no text contains a NUL.
BREAK = "\x00"


class EncodedRow(NamedTuple):
    """The tokens of a row. Rows with the same `key` share a prefix; `types` are the token types of an encoder."""

    ids: list[int]
    is_cut: bool = False  # Whether its document was cut.
    key: tuple[str, ...] = ()
    types: list[int] | None = None


def part_controls(tokenizer: Any, texts: Sequence[str]) -> list[str]:
    """Insert a BREAK into each control token (such as `<|im_end|>` or `<think>`) in the texts.

    The option `split_special_tokens` would split special tokens only, and also those of the prompt.
    """
    # Longest names first, since one name may be the beginning of another.
    names = sorted((name for name in tokenizer.get_added_vocab() if len(name) > 1), key=len, reverse=True)
    if not names:
        return [text.replace(BREAK, "") for text in texts]
    controls = re.compile("|".join(map(re.escape, names)))
    return [
        controls.sub(lambda match: f"{match[0][0]}{BREAK}{match[0][1:]}", text.replace(BREAK, "")) for text in texts
    ]


def encode_parted(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, each tokenised whole except where part_controls inserted a BREAK."""
    # A tokenizer does not recognise a control token whose parts are tokenised separately.
    parts_of_texts = [text.split(BREAK) for text in texts]
    all_parts = [part for parts in parts_of_texts for part in parts]
    ids = iter(tokenizer(all_parts, add_special_tokens=False, verbose=False)["input_ids"] if all_parts else [])
    return [[token for _ in parts for token in next(ids)] for parts in parts_of_texts]


def cut_texts(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> tuple[list[str], list[bool]]:
    """Return texts cut to at most `max_tokens` tokens each, and whether each was cut."""
    encoded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    # The end in characters of the last remaining token; None for texts that fit.
    ends = [offsets[max_tokens - 1][1] if len(offsets) > max_tokens else None for offsets in encoded["offset_mapping"]]
    return [text[:end] for text, end in zip(texts, ends, strict=True)], [end is not None for end in ends]


def truncate_ids(ids: list[int], tokenizer: Any, max_length: int, tail: str) -> list[int]:
    """Return at most max_length ids, without the end of the document but with the tail that follows it."""
    if len(ids) <= max_length:
        return ids
    tail_ids = tokenizer(tail, add_special_tokens=False)["input_ids"]
    return [*ids[: max_length - len(tail_ids)], *tail_ids]
