"""Pairs as tokens: what stands in a text stays text, and a row that is too long loses the end of its document."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

# Parts a control token inside a text: no text holds a NUL.
BREAK = "\x00"


class EncodedRow(NamedTuple):
    """The tokens of one row. `key`: rows of one key begin alike; `types`: an encoder's, of query and document."""

    ids: list[int]
    is_cut: bool = False  # Its document did not fit.
    key: tuple[str, ...] = ()
    types: list[int] | None = None


def part_controls(tokenizer: Any, texts: Sequence[str]) -> list[str]:
    """Put a BREAK into each control token (`<|im_end|>`, `<think>` ...) that occurs in a text.

    `split_special_tokens` would do it for special tokens alone, and for those of the prompt, too.
    """
    # Longest names first: a name that begins like another one would otherwise be cut in its middle.
    names = sorted((name for name in tokenizer.get_added_vocab() if len(name) > 1), key=len, reverse=True)
    if not names:
        return [text.replace(BREAK, "") for text in texts]
    controls = re.compile("|".join(map(re.escape, names)))
    return [controls.sub(lambda found: f"{found[0][0]}{BREAK}{found[0][1:]}", t.replace(BREAK, "")) for t in texts]


def encode_parted(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, each tokenised whole but for where part_controls put a BREAK."""
    # Tokenised in parts, since a tokenizer knows a control token only where it stands whole.
    parts = [text.split(BREAK) for text in texts]
    flat = [part for several in parts for part in several]
    ids = iter(tokenizer(flat, add_special_tokens=False, verbose=False)["input_ids"] if flat else [])
    return [[one for _ in several for one in next(ids)] for several in parts]


def cut_texts(tokenizer: Any, texts: Sequence[str], most: int) -> tuple[list[str], list[bool]]:
    """Return texts of at most so many tokens each, and which of them were cut."""
    found = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    # The end of the last kept token, in characters: cut as text, so that the prompt is built as for any document.
    ends = [offsets[most - 1][1] if len(offsets) > most else None for offsets in found["offset_mapping"]]
    return [text[:end] for text, end in zip(texts, ends, strict=True)], [end is not None for end in ends]


def truncate_ids(ids: list[int], tokenizer: Any, max_length: int, tail: str) -> list[int]:
    """Return at most max_length ids: the document's end goes, what follows it stays."""
    if len(ids) <= max_length:
        return ids
    kept = tokenizer(tail, add_special_tokens=False)["input_ids"]
    return [*ids[: max_length - len(kept)], *kept]
