"""Runs by an embedding model in a folder: a search over its vectors (RTriever 5.2).

Vectors are stored in VAR by the hash of the model's weights.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmark.models import Run
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.model_folders import check_folder, check_weights, reader_of
from benchmark.runs.vector_index import keep_facts
from benchmark.runs.vector_search import FolderVectors, IndexedVectors
from benchmark.runs.vectors import NearestDocuments, Store, Vectors, text_digest, vectors_folder
from corpus.models import Collection
from judges.records import Judge

KIND = Run.Kind.EMBEDDING


class TextEncoder(Protocol):
    """A model that turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return vectors (n, size), and the number of tokens."""


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `model` (a folder), `query_prefix` (by default the model's), `document_prefix`, `device`.

    Raises BadOption.
    """
    folder, recorded = check_folder(KIND, recipe)
    prefix = str(recipe.get("query_prefix") or reader_of(KIND).read_query_prefix(folder))
    return {**recorded, "query_prefix": prefix, "document_prefix": str(recipe.get("document_prefix") or "")}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Embed the documents without a vector, then rank the queries that have no ranking yet."""
    check_weights(run.recipe)
    FolderSearch(run.recipe).rank_all(run, progress, should_stop)


class FolderSearch(FolderVectors[Store], IndexedVectors):
    """A search by the cosine of dense vectors."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        super().__init__(recipe, Store(vectors_folder(), named_by_weights(recipe)))
        self.model: TextEncoder = reader_of(KIND).open_embedder(Path(recipe["model"]), recipe["device"])

    def add(self, texts: Sequence[str]) -> None:
        """Embed documents and store their vectors."""
        self.store.add([text_digest(text) for text in texts], self.model.encode(texts)[0])

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        """Rank documents (primary keys) for any texts."""
        vectors, _tokens = self.model.encode([self.recipe["query_prefix"] + text for text in texts])
        results = self.rank_vectors(vectors, depths)
        self.measuring_s = self.nearest.measuring_s
        return results

    def keep_facts(self, run: Run) -> None:
        """Store the number of index lists that were searched, and the recall."""
        keep_facts(run, self.nearest)


def named_by_weights(recipe: Mapping[str, Any], provider: str = "folder") -> Judge:
    """Return a judge that identifies the vectors of a folder by its weights."""
    return Judge(name=Path(recipe["model"]).name, provider=provider, model=recipe["weights"], id=0)
