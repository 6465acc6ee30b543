"""Lengths of documents: in words, or in the tokens of a model (Prism counts tokens)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.search.text import tokenize_text


def length_counter(tokenizer: str | None) -> tuple[Callable[[str], int], str]:
    """Return a text's length counter, and the unit; `tokenizer`: file, folder."""
    if tokenizer is None:
        return lambda text: len(tokenize_text(text)), "words"
    found = load_tokenizer(tokenizer)
    return lambda text: len(found.encode(text, add_special_tokens=False).ids), "tokens"


def load_tokenizer(tokenizer: str) -> Any:
    """Load a tokenizer. Raises BadInput for a file that is none."""
    from tokenizers import Tokenizer

    path = file_of(tokenizer)
    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        said = _("%(name)s is no tokenizer.json of Hugging Face tokenizers: %(error)s")
        raise BadInput(said % {"name": path.name, "error": error}) from None
    # Many files ask for both, and every text would have the same length.
    found.no_truncation()
    found.no_padding()
    return found


def file_of(tokenizer: str) -> Path:
    """Return a folder's tokenizer.json, or the file. BadInput without one."""
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        said = _("%(name)s is not there; name a tokenizer.json, or a model's folder that holds one")
        raise BadInput(said % {"name": path.name})
    return path
