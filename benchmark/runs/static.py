"""Runs by static embeddings (corpus.search.static_embeddings): the built-in retriever beside BM25, without a model.

Title and text are joined by a line break. Vectors are stored in VAR by the hash of the table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.embedding import named_by_weights
from benchmark.runs.vector_index import keep_facts
from benchmark.runs.vector_search import FolderVectors, IndexedVectors
from benchmark.runs.vectors import NearestDocuments, Store, text_digest, vectors_folder
from corpus.errors import BadOption
from corpus.models import Collection
from corpus.search import static_embeddings


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the table's name and hash. Raises BadOption where wordllama is not installed."""
    if not static_embeddings.is_available():
        raise BadOption("system", _("Static embeddings need wordllama, which is not installed on this machine."))
    return {"model": "wordllama", "weights": static_embeddings.hash_weights()}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Embed the documents without a vector, then rank the queries that have no ranking yet."""
    StaticSearch(run.recipe).rank_all(run, progress, should_stop)


class StaticSearch(FolderVectors[Store], IndexedVectors):
    """A search by the cosine of static embeddings."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        super().__init__(recipe, Store(vectors_folder(), named_by_weights(recipe, "static")))

    def add(self, texts: Sequence[str]) -> None:
        """Embed documents and store their vectors."""
        self.store.add([text_digest(text) for text in texts], static_embeddings.embed(texts))

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        """Rank documents (primary keys) for any texts."""
        results = self.rank_vectors(static_embeddings.embed(texts), depths)
        self.measuring_s = self.nearest.measuring_s
        return results

    def keep_facts(self, run: Run) -> None:
        """Store the number of index lists that were searched, and the recall."""
        keep_facts(run, self.nearest)
