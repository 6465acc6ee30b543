"""Static embeddings: a text's vector is the mean of its word pieces' vectors, from a table in the wheel of wordllama.

No model runs and nothing is downloaded. A search by these vectors finds what shares no word with the query.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import file_digest
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.models import Collection, Document

Vectors = NDArray[np.float32]
AT_ONCE = 64  # Texts in one batch of wordllama.
READ = 1000  # Documents in one read of the database.


def is_available() -> bool:
    """Return whether wordllama is installed, as it is with CPython 3.11 to 3.13 on Linux x86-64."""
    return find_spec("wordllama") is not None


def embed(texts: Sequence[str]) -> Vectors:
    """Return vectors of length 1, (texts, 256); of a text without a known word piece, zeros."""
    if not texts:
        return np.empty((0, 256), dtype=np.float32)
    vectors: Vectors = np.asarray(_load().embed(list(texts), norm=False, batch_size=AT_ONCE), dtype=np.float32)
    vectors = np.nan_to_num(vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units


@lru_cache(maxsize=1)
def hash_weights() -> str:
    """Return the hash of the table, by which stored vectors are known."""
    with (_package() / "weights" / "l2_supercat_256.safetensors").open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _package() -> Path:
    spec = find_spec("wordllama")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@lru_cache(maxsize=1)
def _load() -> Any:
    # Imported late: it takes 0.2 s and 130 MB. The weights lie in the package, so nothing is downloaded.
    from wordllama import WordLlama

    return WordLlama.load(cache_dir=_package(), disable_download=True)


class StaticIndex:
    """The vectors of a collection's current documents, in memory: 1 kB for each."""

    def __init__(self, collection: Collection) -> None:
        documents = Document.objects.filter(collection=collection, is_current=True).order_by("pk")
        keys: list[int] = []
        blocks = []
        rows = documents.values_list("pk", "title", "text").iterator(chunk_size=READ)
        while block := list(islice(rows, READ)):
            keys += [key for key, _title, _text in block]
            blocks.append(embed([f"{title}\n{text}" if title else text for _key, title, text in block]))
        self.keys = np.array(keys, dtype=np.int64)
        self.vectors = np.concatenate(blocks) if blocks else embed([])

    def search(self, text: str, depth: int) -> list[int]:
        """Return the primary keys of the nearest documents, nearest first; of a text without a known piece, none."""
        (vector,) = embed([text])
        if not vector.any():
            return []
        order = np.argsort(-(self.vectors @ vector), kind="stable")[:depth]
        return [int(key) for key in self.keys[order]]
