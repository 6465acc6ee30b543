"""Counting words of documents into BM25's matrix, in arrays all the way. Pure.

bm25s counts each document by itself in Python: minutes for a million passages, and a list of arrays that alone is
larger than the matrix. Here documents are counted some thousands at a time; the numbers are bm25s' own to the last bit
(docs/adr/0032).
"""

import math
from array import array
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.search.text import words

TOKENS = 2_000_000
"""Tokens counted together: 16 MB of keys."""
COLUMN = 32
"""Bits of a key that hold the word; those above it hold the document."""


class Matrix(NamedTuple):
    """Columns are words: `data[starts[w] : starts[w + 1]]` are scores of the documents in the same part of `rows`."""

    data: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]


class Postings:
    """Feed it documents by `add`, then ask for the `matrix`. Words are numbered as they come."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self._tokens, self._lengths, self._counted = array("i"), array("i"), 0
        self._parts: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.unsignedinteger]]] = []

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str) -> None:
        """The next document."""
        known = self.vocabulary
        found = [known.setdefault(word, len(known)) for word in words(text)]
        self._lengths.append(len(found))
        self._tokens.extend(found)
        if len(self._tokens) >= TOKENS:
            self._count()

    def _count(self) -> None:
        """Distinct (document, word) of what was added since the last time, with how often the word stands there."""
        lengths = np.frombuffer(self._lengths, dtype=np.int32)[self._counted :]
        rows = np.repeat(np.arange(self._counted, self._counted + len(lengths), dtype=np.int64), lengths)
        keys, counts = np.unique((rows << COLUMN) | np.frombuffer(self._tokens, dtype=np.int32), return_counts=True)
        narrow = np.min_scalar_type(int(counts.max(initial=0)))  # a byte, for all but strange documents
        found, columns = (keys >> COLUMN).astype(np.int32), (keys & (2**COLUMN - 1)).astype(np.int32)
        self._parts.append((found, columns, counts.astype(narrow)))
        self._counted += len(lengths)
        del lengths  # an array that somebody looks into cannot grow
        self._tokens = array("i")

    def matrix(self, k1: float, b: float) -> Matrix:
        """Scores of every word in every document that holds it: Lucene's idf times tf / (k1 (1 - b + b l / L) + tf)."""
        self._count()
        width = len(self.vocabulary)
        frequencies = np.zeros(width, dtype=np.int64)
        for _rows, columns, _counts in self._parts:
            frequencies += np.bincount(columns, minlength=width)
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        data, rows = np.empty(starts[-1], dtype=np.float32), np.empty(starts[-1], dtype=np.int32)
        idf, free = self._idf(frequencies), starts[:-1].copy()
        lengths = np.frombuffer(self._lengths, dtype=np.int32)
        average = float(lengths.mean()) if len(lengths) else 0.0
        while self._parts:
            part, columns, counts = self._parts.pop(0)
            order = np.argsort(columns, kind="stable")
            part, columns, counts = part[order], columns[order], counts[order]
            scores = idf[columns] * (counts / (k1 * ((1 - b) + b * lengths[part] / average) + counts))
            found, first, many = np.unique(columns, return_index=True, return_counts=True)
            at = np.repeat(free[found] - first, many) + np.arange(len(columns))
            data[at], rows[at] = scores, part
            free[found] += many
        return Matrix(data, rows, starts)

    def _idf(self, frequencies: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """By `math.log`, whose last bit numpy's may not share; once for each frequency that there is."""
        found, which = np.unique(frequencies, return_inverse=True)
        number = len(self)
        values = [math.log(1 + (number - one + 0.5) / (one + 0.5)) for one in found.tolist()]
        return np.array(values, dtype=np.float32)[which]
