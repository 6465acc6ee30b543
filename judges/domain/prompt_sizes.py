"""How many tokens a prompt has at least: a server that counted fewer has cut it, and judged something else. Pure."""

import re
from collections import OrderedDict

# Characters of scripts without spaces between words: each is a token, or two or three of them together.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
CHARACTERS_A_TOKEN = 3  # Of these scripts, at most: vocabularies have words of two or three characters.
SLACK = 0.8  # Some vocabularies have tokens of two words.
# Servers cut at a context that somebody set: a multiple of this, or half of one and two more (Ollama).
STEP = 1024
KEPT = 16
FEW = 256  # Smaller prompts are not cut by anybody.


def least_tokens(text: str) -> int:
    """Return tokens that no tokenizer stays below: one for each word between spaces, or three characters of Chinese.

    Tokenizers cut a text at its spaces first, so that no token holds two words; runs of spaces may be one token.
    """
    words = len(text.split())
    return words if text.isascii() else words + len(UNSPACED.findall(text)) // CHARACTERS_A_TOKEN


def short_estimate(text: str) -> int:
    """Return the fewest usual tokens: five characters, two of a script without spaces."""
    unspaced = 0 if text.isascii() else len(UNSPACED.findall(text))
    return (len(text) - unspaced) // 5 + unspaced // 2


def long_estimate(text: str) -> int:
    """Return the most tokens that are usual: four characters each, or one of any other script."""
    plain = sum(character.isascii() for character in text)
    return plain // 4 + len(text) - plain


def context_for(prompt: int, answer: int) -> int:
    """Return the context length that a prompt and answer need, as people set it."""
    return -(-(prompt + answer) // STEP) * STEP


def is_cut(text: str, counted: int, reserved: int = 0) -> bool:
    """Return whether a server that counted so many tokens did not read the whole text.

    `reserved`: tokens of the answer, for which some servers leave room within the context.
    """
    if counted <= 0 or len(text) < FEW:
        return False
    if counted < SLACK * least_tokens(text):
        return True
    at_limit = any((counted + room + 1) % STEP in (0, 1, 2, 3) for room in (0, reserved))
    return at_limit and short_estimate(text) > 1.05 * counted


class RepeatedCounts:
    """The newest counts of one judge: the same for prompts of clearly different length is where a server cuts."""

    def __init__(self) -> None:
        self.lengths: OrderedDict[int, int] = OrderedDict()  # Characters of a prompt, by the tokens counted for it.

    def is_cut(self, text: str, counted: int) -> bool:
        """Note a prompt and its count; return whether an earlier one of another length had the same: both are cut."""
        known = self.lengths.setdefault(counted, len(text))
        self.lengths.move_to_end(counted)
        if len(self.lengths) > KEPT:
            self.lengths.popitem(last=False)
        differ = max(known, len(text)) > 1.2 * min(known, len(text))
        return counted >= FEW and differ and short_estimate(text) > counted
