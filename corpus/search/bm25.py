"""BM25 over a collection's current documents: candidates for pairs, and a lexical assessor's evidence.

`Index` is pure. `index_for` loads a collection's index, which is built once per content and stored
in VAR. Scores are those of the `lucene` variant over `text.tokenize_text`. Candidates and assessors
always use k1 = 1.5 and b = 0.75; a run may have other parameters, such as pyserini's 0.9 and 0.4.
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
Tell = Callable[[int], None]  # Receives the number of documents read while an index is being built.

# By collection, k1 and b: the time of the last check of the documents, their hash, and the index.
_recent: dict[tuple[int, float, float], tuple[float, str, "Index"]] = {}


class TokenLists(Sequence["array[int]"]):
    """Documents as word numbers in one array; lists of integers would not fit into memory."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self._tokens, self._starts = array("i"), array("q", [0])

    def add(self, text: str) -> None:
        """Add the next document; words are numbered in the order of their first use."""
        vocabulary = self.vocabulary
        self._tokens.extend(vocabulary.setdefault(word, len(vocabulary)) for word in tokenize_text(text))
        self._starts.append(len(self._tokens))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._tokens[self._starts[position] : self._starts[position + 1]]


def _create_scorer(k1: float, b: float) -> bm25s.BM25:
    # SciPy's backend takes half the time of the library's own.
    return bm25s.BM25(k1=k1, b=b, method="lucene", csc_backend="scipy")


class Index:
    """A BM25 index by primary keys; documents of equal scores are sorted by document id, descending."""

    def __init__(self, scorer: bm25s.BM25, keys: Keys) -> None:
        self._scorer = scorer
        self._keys = keys
        self._order = np.argsort(keys)

    @classmethod
    def build(cls, documents: Iterable[tuple[int, str]], k1: float = K1, b: float = B) -> "Index":
        """Build an index of documents (primary key, text), which come by document id, descending."""
        lists, keys = TokenLists(), array("q")
        for key, text in documents:
            keys.append(key)
            lists.add(text)
        scorer = _create_scorer(k1, b)
        if lists.vocabulary:
            tokenized = Tokenized(ids=lists, vocab=lists.vocabulary)
            scorer.index(tokenized, create_empty_token=False, show_progress=False)
        # If no document has a word, nothing can be found.
        else:
            keys = array("q")
        return cls(scorer, np.array(keys, dtype=np.int64))

    @classmethod
    def load(cls, folder: Path) -> "Index":
        """Load a folder that `save` wrote; the matrix stays in the file, whose pages all processes share."""
        keys = np.load(folder / "keys.npy")
        scorer = _create_scorer(K1, B)
        if len(keys):
            scorer = bm25s.BM25.load(folder, show_progress=False, mmap=True)
            for part in ("data", "indices", "indptr"):
                # A plain array over the same pages: slicing a memmap costs more than reading its rows.
                scorer.scores[part] = np.asarray(scorer.scores[part])
        return cls(scorer, keys)

    def save(self, folder: Path) -> None:
        """Write the index to a temporary folder and rename it, so that no reader sees a partial index."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            np.save(temporary / "keys.npy", self._keys)
            if len(self._keys):
                self._scorer.save(temporary, show_progress=False)
            if not folder.exists():
                temporary.rename(folder)
        except OSError:
            # If the folder exists now, another process wrote the same content first.
            if not folder.exists():
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return the best k documents with a score above 0: (primary key, score), best first."""
        tokens = self._tokens(query)
        if not tokens:
            return []
        scores = self._scorer.get_scores_from_ids(tokens)
        matching = np.flatnonzero(scores > 0)
        if len(matching) > k:
            # Keep all documents with the k-th score, so that ties are cut by document id and not by chance.
            threshold = np.partition(scores[matching], -k)[-k]
            matching = matching[scores[matching] >= threshold]
        # A stable sort, because the rows are in the order in which ties are broken.
        best = matching[np.argsort(-scores[matching], kind="stable")][:k]
        return [(int(self._keys[row]), float(scores[row])) for row in best]

    def score(self, query: str, document: int) -> float:
        """Return the BM25 score of one document by its primary key; 0.0 if the index does not contain it."""
        return float(self.scores(query, [document])[0])

    def scores(self, query: str, documents: Sequence[int] | Keys) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the BM25 scores of these documents, in order, including those that a search would not find."""
        document_rows, is_indexed = self._rows(documents)
        total = np.zeros(len(document_rows))
        if not is_indexed.any():
            return total
        data, indices, starts = (self._scorer.scores[part] for part in ("data", "indices", "indptr"))
        for token in self._tokens(query):
            begin, end = starts[token], starts[token + 1]
            rows = indices[begin:end]
            # The rows of a word are sorted, so that a document is found by binary search.
            positions = np.minimum(np.searchsorted(rows, document_rows), len(rows) - 1)
            occurs = is_indexed & (rows[positions] == document_rows)
            total[occurs] += data[begin + positions[occurs]]
        return total

    def holds(self, documents: Sequence[int] | Keys) -> bool:
        """Return whether the index contains all these documents; an index without any word counts as complete."""
        return not len(self._keys) or bool(self._rows(documents)[1].all())

    def _rows(self, documents: Sequence[int] | Keys) -> tuple[Keys, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
        """Return the rows of the documents in the index, and whether the index contains them."""
        keys = np.asarray(documents, dtype=np.int64)
        if not len(self._keys):
            return keys, np.zeros(len(keys), dtype=bool)
        positions = np.minimum(np.searchsorted(self._keys, keys, sorter=self._order), len(self._keys) - 1)
        rows = self._order[positions]
        return rows, self._keys[rows] == keys

    def frequency(self, word: str) -> int:
        """Return the number of documents that contain a word of `tokenize_text`."""
        if not len(self._keys) or word not in self._scorer.vocab_dict:
            return 0
        starts, token = self._scorer.scores["indptr"], self._scorer.vocab_dict[word]
        return int(starts[token + 1] - starts[token])

    def _tokens(self, query: str) -> Sequence[int]:
        """Return the numbers of the query's words that the index contains, with repetitions."""
        if not len(self._keys):
            return []
        vocabulary = self._scorer.vocab_dict
        return [vocabulary[word] for word in tokenize_text(query) if word in vocabulary]


def index_for(
    collection: Collection | int, *, max_age: float = 0.0, k1: float = K1, b: float = B, tell: Tell | None = None
) -> Index:
    """Return the index of the current documents; one checked within the last `max_age` seconds is not checked again."""
    key = (collection if isinstance(collection, int) else collection.pk, k1, b)
    recent = _recent.get(key)
    # Judges need the same index many times a second, so they check for changes only now and then.
    if recent and monotonic() - recent[0] < max_age:
        return recent[2]
    content = content_hash(key[0])
    if recent and recent[1] == content:
        index = recent[2]
    else:
        # Load the index from VAR, or build it and write it on commit.
        collection, k1, b = key
        folder = _index_folder() / f"bm25-{content}{'' if (k1, b) == (K1, B) else f'-{k1:g}-{b:g}'}"
        # A folder is renamed into place when it is complete, so that one of its files shows it.
        if (folder / "keys.npy").exists():
            index = Index.load(folder)
        else:
            with closing(iterate_documents(collection, tell)) as documents:
                index = Index.build(documents, k1, b)
            # A transaction that is rolled back, such as a dry run, must not leave an index of its documents.
            transaction.on_commit(lambda: index.save(folder))
            # Loaded again if it was written, so that a long-lived worker uses the file's pages and not its own memory.
            index = Index.load(folder) if (folder / "keys.npy").exists() else index
    # The oldest one is dropped: a worker may serve many collections, and an index can be large.
    while len(_recent) >= 4 and key not in _recent:
        _recent.pop(next(iter(_recent)))
    _recent[key] = (monotonic(), content, index)
    return index


def _index_folder() -> Path:
    return Path(settings.VAR) / "indexes"


def content_hash(collection: int) -> str:
    """Return a hash of the current documents, of their rows and their contents."""
    # XOR needs no order, so that no row is sorted; with two seeds the hash has 128 bits.
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
    """Yield (key, text) of the current documents by id, descending; without a transaction, so progress shows."""
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
    """Delete the indexes of the collection's current documents in VAR."""
    # The cache of this process; others notice the change by the hash.
    for key in [key for key in _recent if key[0] == collection.pk]:
        del _recent[key]
    for folder in _index_folder().glob(f"bm25-{content_hash(collection.pk)}*"):
        shutil.rmtree(folder, ignore_errors=True)
