"""BM25 over a collection's current documents: candidates for pairs, and a lexical assessor's evidence.

`Index` is pure. `index_for` loads a collection's index, built once per content and kept in VAR.
Scores are those of the `lucene` variant over `text.tokenize_text`. Candidates and assessors have k1
= 1.5 and b = 0.75, so that they stay the same; a run may have others, such as pyserini's 0.9 and
0.4.
"""

import logging
import shutil
import tempfile
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import bm25s
import numpy as np
from bm25s.tokenization import Tokenized
from django.conf import settings
from django.db import connection, transaction

from corpus.models import Collection
from corpus.search.text import tokenize_text

logging.getLogger("bm25s").setLevel(logging.WARNING)

# Part of the cache's key: raise it when tokens, parameters or the file layout change.
VERSION = "1"
K1, B = 1.5, 0.75
EVERY = 1000
Keys = np.ndarray[tuple[int], np.dtype[np.int64]]
Tell = Callable[[int], None]  # Told how many documents an index that is being built has read.

# By collection, k1 and b: when the documents were last looked at, their hash, and the index.
_recent: dict[tuple[int, float, float], tuple[float, str, "Index"]] = {}


class TokenLists(Sequence["array[int]"]):
    """Documents as word numbers in one array; lists of integers would not fit into memory."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self._tokens, self._starts = array("i"), array("q", [0])

    def add(self, text: str) -> None:
        """Add the next document; words are numbered in the order of their first use."""
        known = self.vocabulary
        self._tokens.extend(known.setdefault(word, len(known)) for word in tokenize_text(text))
        self._starts.append(len(self._tokens))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._tokens[self._starts[at] : self._starts[at + 1]]


def _create_scorer(k1: float, b: float) -> bm25s.BM25:
    return bm25s.BM25(k1=k1, b=b, method="lucene", csc_backend="scipy")  # half the time of its own


class Index:
    """BM25 index by primary keys. Equal scores by document id descending."""

    def __init__(self, scorer: bm25s.BM25, keys: Keys) -> None:
        self._scorer = scorer
        self._keys = keys
        self._order = np.argsort(keys)

    @classmethod
    def build(cls, documents: Iterable[tuple[int, str]], k1: float = K1, b: float = B) -> "Index":
        """Build an index of (primary key, text), by document id descending."""
        lists, keys = TokenLists(), array("q")
        for key, text in documents:
            keys.append(key)
            lists.add(text)
        scorer = _create_scorer(k1, b)
        if lists.vocabulary:
            tokenized = Tokenized(ids=lists, vocab=lists.vocabulary)
            scorer.index(tokenized, create_empty_token=False, show_progress=False)
        else:  # not one word in any document: nothing can ever be found
            keys = array("q")
        return cls(scorer, np.array(keys, dtype=np.int64))

    @classmethod
    def load(cls, folder: Path) -> "Index":
        """Load a folder that `save` wrote. The matrix stays in the file: processes share the system's copy of it."""
        keys = np.load(folder / "keys.npy")
        scorer = _create_scorer(K1, B)
        if len(keys):
            scorer = bm25s.BM25.load(folder, show_progress=False, mmap=True)
            for part in ("data", "indices", "indptr"):
                # Still the file's pages, but a plain array: to slice a memmap costs more than to read its rows.
                scorer.scores[part] = np.asarray(scorer.scores[part])
        return cls(scorer, keys)

    def save(self, folder: Path) -> None:
        """Write beside and rename, so that a reader never meets half an index."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            np.save(beside / "keys.npy", self._keys)
            if len(self._keys):
                self._scorer.save(beside, show_progress=False)
            if not folder.exists():
                beside.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was first, with the same content
                raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return the best k documents with a score above 0: (primary key, score), best first."""
        tokens = self._tokens(query)
        if not tokens:
            return []
        scores = self._scorer.get_scores_from_ids(tokens)
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            # Everything not below the k-th score, so that the cut among equals is by document id, not by chance.
            threshold = np.partition(scores[found], -k)[-k]
            # Stable, because documents stand in the order that ties are broken by.
            found = found[scores[found] >= threshold]
        best = found[np.argsort(-scores[found], kind="stable")][:k]
        return [(int(self._keys[row]), float(scores[row])) for row in best]

    def score(self, query: str, document: int) -> float:
        """Return the BM25 score of one document by its primary key; 0.0 for one that the index does not hold."""
        return float(self.scores(query, [document])[0])

    def scores(self, query: str, documents: Sequence[int] | Keys) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return these documents' BM25 scores, in order, whatever a search finds."""
        wanted, held = self._rows(documents)
        total = np.zeros(len(wanted))
        if not held.any():
            return total
        data, indices, starts = (self._scorer.scores[part] for part in ("data", "indices", "indptr"))
        for token in self._tokens(query):
            begin, end = starts[token], starts[token + 1]
            rows = indices[begin:end]
            # The rows of a word are sorted, so a document is found by halving.
            at = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
            found = held & (rows[at] == wanted)
            total[found] += data[begin + at[found]]
        return total

    def holds(self, documents: Sequence[int] | Keys) -> bool:
        """Return whether the index holds all these documents. An index without any word holds none, and lacks none."""
        return not len(self._keys) or bool(self._rows(documents)[1].all())

    def _rows(self, documents: Sequence[int] | Keys) -> tuple[Keys, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
        """Return where the documents stand in the index, and whether they do."""
        wanted = np.asarray(documents, dtype=np.int64)
        if not len(self._keys):
            return wanted, np.zeros(len(wanted), dtype=bool)
        at = np.minimum(np.searchsorted(self._keys, wanted, sorter=self._order), len(self._keys) - 1)
        rows = self._order[at]
        return rows, self._keys[rows] == wanted

    def frequency(self, word: str) -> int:
        """Return in how many documents a word of `tokenize_text` stands."""
        if not len(self._keys) or word not in self._scorer.vocab_dict:
            return 0
        starts, token = self._scorer.scores["indptr"], self._scorer.vocab_dict[word]
        return int(starts[token + 1] - starts[token])

    def _tokens(self, query: str) -> Sequence[int]:
        """Return the query's known words, as often as they stand in it."""
        if not len(self._keys):
            return []
        vocabulary = self._scorer.vocab_dict
        return [vocabulary[word] for word in tokenize_text(query) if word in vocabulary]


def index_for(
    collection: Collection | int, *, max_age: float = 0.0, k1: float = K1, b: float = B, tell: Tell | None = None
) -> Index:
    """Return the index of current documents; unasked for `max_age` seconds."""
    key = (collection if isinstance(collection, int) else collection.pk, k1, b)
    recent = _recent.get(key)
    # Those who judge ask for the same index many times a second; whether documents changed is asked now and then.
    if recent and monotonic() - recent[0] < max_age:
        return recent[2]
    content = content_hash(key[0])
    index = recent[2] if recent and recent[1] == content else _open_index(key, content, tell)
    # The oldest goes first: a worker may serve many collections, and an index can be large.
    while len(_recent) >= 4 and key not in _recent:
        _recent.pop(next(iter(_recent)))
    _recent[key] = (monotonic(), content, index)
    return index


def _open_index(key: tuple[int, float, float], content: str, tell: Tell | None) -> Index:
    """Load the index from VAR, else build it; written once documents are committed."""
    collection, k1, b = key
    folder = _index_folder() / f"bm25-{content}{'' if (k1, b) == (K1, B) else f'-{k1:g}-{b:g}'}"
    # A folder is renamed into place when it is complete, so one of its files is enough to look for.
    if (folder / "keys.npy").exists():
        return Index.load(folder)
    with closing(iterate_documents(collection, tell)) as documents:
        index = Index.build(documents, k1, b)
    # A transaction that is taken back, as that of a dry run, must leave no index of documents that never were.
    transaction.on_commit(lambda: index.save(folder))
    # A worker lives long: what it keeps of a large index is the file's, not its own memory.
    return Index.load(folder) if (folder / "keys.npy").exists() else index


def _index_folder() -> Path:
    return Path(settings.VAR) / "indexes"


def content_hash(collection: int) -> str:
    """Return 32 hex digits that name the set of current documents, rows and content both."""
    # Exclusive or needs no order, so no row is sorted; with two seeds the hash has 128 bits.
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT count(*), COALESCE(bit_xor(hashtextextended(id || content_hash, 0)), 0),
                      COALESCE(bit_xor(hashtextextended(id || content_hash, 1)), 0)
               FROM corpus_document WHERE collection_id = %s AND is_current""",
            [collection],
        )
        count, first, second = cursor.fetchone()
    return f"{VERSION}-{count}-{first & (2**64 - 1):016x}{second & (2**64 - 1):016x}"


def iterate_documents(collection: int, tell: Tell | None = None) -> Generator[tuple[int, str], None, None]:
    """Yield (key, text) of current documents by id, descending; opens no transaction, so that others see progress."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            """SELECT id, CASE WHEN title = '' THEN text ELSE title || E'\\n' || text END FROM corpus_document
               WHERE collection_id = %s AND is_current ORDER BY external_id COLLATE "C" DESC""",
            [collection],
        )
        for number, document in enumerate(cursor):
            if tell is not None and number % EVERY == 0:
                tell(number)
            yield document


def delete_indexes(collection: Collection) -> None:
    """Remove what VAR keeps of the collection's present documents."""
    # In this process; others find out by the hash, which is another one.
    for key in [key for key in _recent if key[0] == collection.pk]:
        del _recent[key]
    for folder in _index_folder().glob(f"bm25-{content_hash(collection.pk)}*"):
        shutil.rmtree(folder, ignore_errors=True)
