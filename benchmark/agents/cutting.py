"""Cut a document to so many tokens, without any model's tokenizer (docs/adr/0088). Pure."""

import re
from itertools import islice

LONGEST = 2048  # Tokens of a document that an agent sees (BRIGHT-Pro appendix F).
TOKENIZER = "word pieces of 5"  # Named in every result: what a token is here.
# Five letters or digits of a word, a single letter of a script without spaces, or one other sign. English text has
# about as many of these as tokens of a BPE vocabulary.
_TOKEN = re.compile(
    r"[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\U00020000-\U0003ffff]|[^\W぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\U00020000-\U0003ffff]{1,5}|[^\w\s]|_"
)


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return sum(1 for _ in _TOKEN.finditer(text))


def cut_text(text: str, most: int = LONGEST) -> tuple[str, bool]:
    """The first `most` tokens of a text, and whether more stood there."""
    # Lazily, token by token: of a document of megabytes only the beginning is read.
    last = next(islice(_TOKEN.finditer(text), most, None), None)
    return (text, False) if last is None else (text[: last.start()].rstrip(), True)
