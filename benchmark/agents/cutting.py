"""Documents cut to a number of tokens, by word pieces or a named tokenizer (ADR 0088)."""

import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.search.lengths import file_of, load_tokenizer
from store.files import fetch, hash_file

LONGEST = 2048  # Tokens of a document that an agent sees (BRIGHT-Pro appendix F).
TOKENIZER = "word pieces of 5"  # Named in every result: what a token is unless a tokenizer is named.
Cut = Callable[[str], tuple[str, bool]]
# Five letters or digits of a word, a single letter of a script without spaces, or one other sign.
# English text has about as many of these as tokens of a BPE vocabulary.
_TOKEN = re.compile(
    r"[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\U00020000-\U0003ffff]|[^\W぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\U00020000-\U0003ffff]{1,5}|[^\w\s]|_"
)


def count_tokens(text: str) -> int:
    """Count the word pieces of a text."""
    return sum(1 for _match in _TOKEN.finditer(text))


def cut_text(text: str, most: int = LONGEST) -> tuple[str, bool]:
    """Return the first `most` tokens of a text, and whether anything was cut off."""
    # Lazily, token by token: only the beginning of a document of megabytes is read.
    last = next(islice(_TOKEN.finditer(text), most, None), None)
    return (text, False) if last is None else (text[: last.start()].rstrip(), True)


def describe_tokenizer(tokenizer: str | None) -> dict[str, Any]:
    """Return the name, file and hash of a tokenizer, as a job stores them. Raises BadInput."""
    if not tokenizer:
        return {"tokenizer": TOKENIZER}
    folder = settings.BASE_MODELS / tokenizer
    path = file_of(str(folder) if folder.exists() else tokenizer).resolve()
    load_tokenizer(str(path))
    name = path.parent.name if path.name == "tokenizer.json" else path.name
    return {"tokenizer": name, "tokenizer_file": str(path), "tokenizer_sha256": hash_file(path)}


def open_cut(options: dict[str, Any]) -> Cut:
    """Return the function that cuts the documents of a job. Raises BadInput if its tokenizer has changed."""
    if "tokenizer_file" not in options:
        return cut_text
    path = fetch(Path(options["tokenizer_file"]))
    if not path.is_file() or hash_file(path) != options["tokenizer_sha256"]:
        raise BadInput(_("%(folder)s changed since the run was started: start another run") % {"folder": path})
    tokenizer = load_tokenizer(str(path))

    def cut(text: str, most: int = LONGEST) -> tuple[str, bool]:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        # Up to the first token left out: a character of several tokens is shown whole or not at all.
        return (text, False) if len(offsets) <= most else (text[: offsets[most][0]].rstrip(), True)

    return cut
