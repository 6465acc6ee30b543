"""The fewest tokens that a prompt can have: a server that counted fewer has cut it, and judged something else. Pure."""

import re
from collections import OrderedDict

# Characters of scripts without spaces between words: each is a token, or two or three of them together.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
CHARACTERS_A_TOKEN = 3  # Of these scripts, at most: vocabularies have words of two or three characters.
SLACK = 0.8  # Some vocabularies have tokens of two words.
# Servers cut at a configured context length: a multiple of this, or half of one plus two (Ollama).
STEP = 1024
RECENT_COUNTS = 16
FEW = 256  # No server cuts prompts below this many characters or tokens.


def least_tokens(text: str) -> int:
    """Return a lower bound on the tokens of any tokenizer: one per word, or per three characters of Chinese.

    Tokenizers split a text at its spaces first, so no token contains two words; a run of spaces may be one token.
    """
    word_count = len(text.split())
    return word_count if text.isascii() else word_count + len(UNSPACED.findall(text)) // CHARACTERS_A_TOKEN


def short_estimate(text: str) -> int:
    """Return a low estimate of the tokens: one per five characters, or per two of a script without spaces."""
    unspaced = 0 if text.isascii() else len(UNSPACED.findall(text))
    return (len(text) - unspaced) // 5 + unspaced // 2


def context_for(prompt: int, answer: int) -> int:
    """Return the context length that a prompt and its answer need, rounded up to a multiple of 1,024."""
    return -(-(prompt + answer) // STEP) * STEP


def is_cut(text: str, counted: int, reserved: int = 0) -> bool:
    """Return whether a server that `counted` so many tokens cannot have read the whole text.

    `reserved`: tokens of the answer, for which some servers leave room within the context.
    """
    if counted <= 0 or len(text) < FEW:
        return False
    if counted < SLACK * least_tokens(text):
        return True
    at_limit = any((counted + room + 1) % STEP in (0, 1, 2, 3) for room in (0, reserved))
    return at_limit and short_estimate(text) > 1.05 * counted


class RepeatedCounts:
    """The latest token counts of one judge: equal counts for prompts of very different lengths mean a cut."""

    def __init__(self) -> None:
        self.lengths: OrderedDict[int, int] = OrderedDict()  # Characters of a prompt, by its number of tokens.

    def is_cut(self, text: str, counted: int) -> bool:
        """Record a prompt's count; return whether a prompt of another length had the same count, so both were cut."""
        earlier_length = self.lengths.setdefault(counted, len(text))
        self.lengths.move_to_end(counted)
        if len(self.lengths) > RECENT_COUNTS:
            self.lengths.popitem(last=False)
        lengths_differ = max(earlier_length, len(text)) > 1.2 * min(earlier_length, len(text))
        return counted >= FEW and lengths_differ and short_estimate(text) > counted
