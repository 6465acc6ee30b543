"""Lengths of documents: in words, or in the tokens of a model (Prism counts tokens)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.search.text import tokenize_text


def length_counter(tokenizer: str | None) -> tuple[Callable[[str], int], str]:
    """Return a function that measures the length of a text, and its unit; `tokenizer` is a file or folder."""
    if tokenizer is None:
        return lambda text: len(tokenize_text(text)), "words"
    model_tokenizer = load_tokenizer(tokenizer)
    return lambda text: len(model_tokenizer.encode(text, add_special_tokens=False).ids), "tokens"


def load_tokenizer(tokenizer: str) -> Any:
    """Load a tokenizer. Raises BadInput for any other file."""
    from tokenizers import Tokenizer

    path = file_of(tokenizer)
    try:
        model_tokenizer = Tokenizer.from_file(str(path))
    # The library raises plain Exception.
    except Exception as error:
        message = _("%(name)s is not a tokenizer.json of Hugging Face tokenizers: %(error)s")
        raise BadInput(message % {"name": path.name, "error": error}) from None
    # Many files set both, with which every text would have the same length.
    model_tokenizer.no_truncation()
    model_tokenizer.no_padding()
    return model_tokenizer


def file_of(tokenizer: str) -> Path:
    """Return the file, or the tokenizer.json of a folder. Raises BadInput if there is none."""
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        message = _("%(name)s does not exist; name a tokenizer.json, or a model's folder that contains one")
        raise BadInput(message % {"name": path.name})
    return path
