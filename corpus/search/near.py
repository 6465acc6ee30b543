"""Groups of near-duplicate texts, by the exact Jaccard similarity of their shingles. Pure.

Candidates are found by prefix filtering: two sets whose Jaccard similarity is at least t share one
of the rarest `|s| - ceil(t |s|) + 1` shingles of each. So no pair is missed, and only pairs that
share a rare shingle are compared.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from corpus.search.text import tokenize_text

QUERY_WORDS = 1
DOCUMENT_WORDS = 2
MOST = 40_000_000  # Shingles that are compared; with more, each text is represented by a sample.
AT_ONCE = 2_000_000  # Candidate pairs in memory.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)

Hashes = NDArray[np.uint64]


class Shingles:
    """The shingles of texts, `size` words each, as hashes. A shorter text is one shingle.

    One in `sample` shingles is kept, chosen by its hash so that the choice is the same in every
    text; with a sample above 1 similarities are estimates.
    """

    def __init__(self, size: int, sample: int = 1) -> None:
        self.size = size
        self.sample = sample
        self._words: dict[str, int] = {}
        self._keys: list[int] = []
        self._sets: list[Hashes] = []

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by their keys; each key may be added only once."""
        keys, runs, word_numbers = [], [], self._words
        # Words are mapped to numbers first: hashing numbers in arrays makes millions of texts feasible.
        for key, text in texts:
            keys.append(key)
            runs.append([word_numbers.setdefault(word, len(word_numbers)) for word in tokenize_text(text)])
        self._keys += keys
        # One sorted array of distinct hashes for each run of word numbers.
        lengths = np.array([len(run) for run in runs], dtype=np.int64)
        flat = _mix_hashes(np.fromiter((w for run in runs for w in run), dtype=np.uint64, count=int(lengths.sum())))
        ends = np.cumsum(lengths)
        rolled = flat.copy()
        for step in range(1, self.size):
            rolled[:-step] = _mix_hashes(rolled[:-step] * _ODD + flat[step:]) if len(flat) > step else rolled[:-step]
        hashes = []
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True):
            words = flat[end - length : end]
            shingles = rolled[end - length : end - self.size + 1] if length >= self.size else _whole_text_shingle(words)
            if self.sample > 1:
                # By hash, so that a shingle is kept either in all texts or in none, and shares can be compared.
                sampled = shingles[shingles % np.uint64(self.sample) == 0]
                # Without any shingle a text would not even be similar to its own copy.
                shingles = sampled if len(sampled) else _whole_text_shingle(words)
            hashes.append(np.unique(shingles))
        self._sets += hashes

    def groups(self, least: float) -> dict[int, int]:
        """Return the group of each text by its key; texts with a similarity of at least `least` share a group."""
        labels = _find_components(self._sets, least)
        return dict(zip(self._keys, labels.tolist(), strict=True))


def groups_of(texts: Mapping[int, str], least: float, size: int) -> dict[int, int]:
    """Return `Shingles.groups` of texts that fit into memory."""
    shingles = Shingles(size)
    shingles.add(texts.items())
    return shingles.groups(least)


def _mix_hashes(values: Hashes) -> Hashes:
    """Return the values with their bits mixed, so that remainders are evenly distributed."""
    with np.errstate(over="ignore"):
        values = (values + _ODD) * _MIX
        values ^= values >> np.uint64(29)
        mixed: Hashes = values * _ODD
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _whole_text_shingle(run: Hashes) -> Hashes:
    """Return a short text as one shingle; an empty text has the shingle 0."""
    value = np.zeros(1, dtype=np.uint64)
    for word in run:
        value = _mix_hashes(value * _ODD + word)
    return value


def _find_components(sets: list[Hashes], least: float) -> NDArray[np.int64]:
    """Return the group number of each set, in their order; equal sets are compared once."""
    first: dict[bytes, int] = {}
    # Copies are recognised by their bytes, so that a million of them cost one comparison.
    number = np.array([first.setdefault(shingle_set.tobytes(), len(first)) for shingle_set in sets], dtype=np.int64)
    if not len(first):
        return number
    # A matrix of texts by shingles, with the columns from rare to frequent.
    sets = [np.frombuffer(key, dtype=np.uint64) for key in first]
    flat = np.concatenate(sets)
    starts = np.concatenate([[0], np.cumsum([len(shingle_set) for shingle_set in sets])])
    _, columns, uses = np.unique(flat, return_inverse=True, return_counts=True)
    rank = np.empty(len(uses), dtype=np.int64)
    rank[np.argsort(uses, kind="stable")] = np.arange(len(uses))
    matrix = csr_matrix((np.ones(len(flat), dtype=np.int32), rank[columns], starts), shape=(len(sets), len(uses)))
    matrix.sort_indices()
    groups = np.arange(len(first))
    for a, b in _candidate_pairs(matrix, least):
        # Pairs of one group need no comparison.
        is_separate = groups[a] != groups[b]
        a, b = a[is_separate], b[is_separate]
        sizes, close = np.diff(matrix.indptr), np.zeros(len(a), dtype=np.bool_)
        # The exact similarity, in parts: the rows of all pairs together would not fit into memory.
        for start in range(0, len(a), 50_000):
            x, y = a[start : start + 50_000], b[start : start + 50_000]
            shared = np.asarray(matrix[x].multiply(matrix[y]).sum(axis=1)).ravel()
            close[start : start + len(x)] = shared >= least * (sizes[x] + sizes[y] - shared) - 1e-9
        if close.any():
            edges = np.ones(int(close.sum()), dtype=np.int8), (groups[a[close]], groups[b[close]])
            graph = coo_matrix(edges, shape=(len(groups), len(groups)))
            groups = connected_components(graph, directed=False)[1].astype(np.int64)[groups]
    labels: NDArray[np.int64] = groups[number]
    return labels


def _candidate_pairs(matrix: csr_matrix, least: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs of texts (a, b) that share a prefix shingle, about AT_ONCE at a time."""
    sizes = np.diff(matrix.indptr)
    # The prefix filter: two sets that are similar enough share one of their rarest shingles.
    prefix = sizes - np.ceil(least * sizes - 1e-9).astype(np.int64) + 1
    text = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.arange(len(text)) - matrix.indptr[text] < prefix[text]
    column, text = matrix.indices[inside], text[inside]
    # Within a shingle from short to long texts; each entry is paired with those after it.
    order = np.lexsort((sizes[text], column))
    column, text = column[order], text[order]
    edges = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1], [True]]))
    last = np.repeat(edges[1:], np.diff(edges))
    partners = last - np.arange(len(text)) - 1
    start = 0
    while start < len(text):
        end = int(np.searchsorted(np.cumsum(partners[start:]), AT_ONCE, side="right")) + start
        # At least one entry, even if its pairs alone are too many: the loop has to end.
        end = max(end, start + 1)
        # The distinct pairs of the entries [low, high) with the entries after each in its shingle.
        counts = partners[start:end]
        first = np.repeat(np.arange(start, end), counts)
        offset = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        a, b = text[first], text[first + 1 + offset]
        # Sets of very different sizes cannot be similar.
        possible = sizes[a] >= least * sizes[b] - 1e-9
        a, b = np.minimum(a, b)[possible], np.maximum(a, b)[possible]
        # A pair may share several shingles of the prefix, but is compared once.
        keys = np.unique(a * np.int64(len(sizes)) + b)
        yield (keys // len(sizes), keys % len(sizes))
        start = end
