"""Runs by a sparse encoder in a folder (SPLADE): an exact search over terms with learned weights, stored in VAR.

A document's score is the sum over the terms that it shares with the query of the products of both
weights. Documents that share no term are not returned.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from benchmark.models import Run
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.embedding import named_by_weights
from benchmark.runs.model_folders import check_folder, check_weights, reader_of
from benchmark.runs.vector_search import FolderVectors
from benchmark.runs.vectors import (
    NearestDocuments,
    Positions,
    TextStore,
    append_at,
    nearest_vectors,
    text_digest,
    vectors_folder,
)
from corpus.models import Collection

KIND = Run.Kind.SPARSE
BATCH_SIZE = 32  # Texts in one forward pass, by default.


class SparseEncoder(Protocol):
    """A model that turns texts into weights of terms: (n, vocabulary), float32."""

    def encode_queries(self, texts: Sequence[str]) -> csr_array: ...
    def encode_documents(self, texts: Sequence[str]) -> csr_array: ...


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `model` (a folder), `device`, `batch_size`. Raises BadOption."""
    return {**check_folder(KIND, recipe)[1], "batch_size": recipe.get("batch_size", BATCH_SIZE)}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Encode the documents without stored weights, then rank the queries that have no ranking yet."""
    check_weights(run.recipe)
    SparseSearch(run.recipe).rank_all(run, progress, should_stop)


class SparseStore(TextStore):
    """The weights of all texts by one model: terms and weights of consecutive texts, and where each text ends."""

    @property
    def ends(self) -> Path:
        return self.folder / "ends"

    @property
    def terms(self) -> Path:
        return self.folder / "terms"

    @property
    def weights(self) -> Path:
        return self.folder / "weights"

    def rows(self, positions: Positions) -> csr_array:
        """Return the weights at these positions, (n, vocabulary)."""
        if not len(positions):
            return csr_array((0, self.size), dtype=np.float32)
        ends = np.memmap(self.ends, dtype="<i8", mode="r")
        # A text begins where the one before it ends; the first begins at 0.
        begins = np.where(positions > 0, ends[positions - 1], 0)
        lengths = ends[positions] - begins
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        if not bounds[-1]:  # An empty file cannot be mapped.
            return csr_array((len(positions), self.size), dtype=np.float32)
        # The index in the file of each number of each row, so that all rows are read at once.
        indices = np.repeat(begins - bounds[:-1], lengths) + np.arange(bounds[-1])
        terms = np.memmap(self.terms, dtype="<i4", mode="r")[indices]
        weights = np.memmap(self.weights, dtype="<f4", mode="r")[indices]
        return csr_array((weights, terms, bounds), shape=(len(positions), self.size))

    def add(self, digests: Sequence[bytes], rows: csr_array) -> None:
        """Append the weights that are not stored yet. Raises BadInput where the model's vocabulary has changed."""
        with self.adding(digests, int(rows.shape[1])) as new_positions:
            new_rows = rows[list(new_positions.values())]
            begin = int(np.memmap(self.ends, dtype="<i8", mode="r")[len(self.positions) - 1]) if self.positions else 0
            append_at(self.terms, begin * 4, new_rows.indices.astype("<i4").tobytes())
            append_at(self.weights, begin * 4, new_rows.data.astype("<f4").tobytes())
            # After the terms and weights, and before the hashes: the ends say how many terms count.
            append_at(self.ends, len(self.positions) * 8, (begin + new_rows.indptr[1:]).astype("<i8").tobytes())

    def pack(self, begin: int, end: int) -> dict[str, Any]:
        rows = self.rows(np.arange(begin, end))
        return {"terms": rows.indices, "weights": rows.data, "bounds": rows.indptr, "size": np.array(self.size)}

    def unpack(self, digests: Sequence[bytes], packed: Mapping[str, Any]) -> None:
        shape = (len(digests), int(packed["size"]))
        self.add(digests, csr_array((packed["weights"], packed["terms"], packed["bounds"]), shape=shape))


class SparseSearch(FolderVectors[SparseStore]):
    """A search by the product of weights."""

    together = 64  # Few, because each query takes a number for every term of the vocabulary.

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        super().__init__(recipe, SparseStore(vectors_folder(), named_by_weights(recipe, "sparse-folder")))
        folder, open_encoder = Path(recipe["model"]), reader_of(KIND).open_sparse_encoder
        self.model: SparseEncoder = open_encoder(folder, recipe["device"], recipe["batch_size"])

    def add(self, texts: Sequence[str]) -> None:
        """Encode documents and store their weights."""
        self.store.add([text_digest(text) for text in texts], self.model.encode_documents(texts))

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        """Rank documents (primary keys) for any texts."""

        def rows(begin: int, end: int) -> csr_array:
            return self.store.rows(self.positions[begin:end])

        results = nearest_vectors(self.model.encode_queries(texts).toarray(), len(self.keys), rows, depths)
        # A document with a score of 0 shares no term with the query and is not returned.
        return [(self.keys[positions[scores > 0]], scores[scores > 0]) for positions, scores in results]
