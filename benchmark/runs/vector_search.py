"""Base of all searches over vectors: documents' vectors are computed or requested once, then queries are ranked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.shared_vectors import publish_vectors, share_vectors
from benchmark.runs.vector_index import NOTHING, VectorSearcher, open_search
from benchmark.runs.vectors import NearestDocuments, Store, TextStore, text_digest
from corpus.models import Collection, Document

SEARCHED = 512  # Queries in one pass over all vectors; each pass reads them from the file.
AHEAD = 1024  # The most documents that are embedded between updates of the progress.
FIRST = 64  # Documents that a model in this process embeds before the first update.
STEP_S = 5.0  # Seconds between updates of the progress.
StoreType = TypeVar("StoreType", bound=TextStore)

# In trec_eval's order of ties: of equal scores the search prefers the earlier document, trec_eval the higher id.
KEYS = """
SELECT id FROM corpus_document WHERE collection_id = %s AND is_current ORDER BY external_id COLLATE "C" DESC
"""


def next_ahead(ahead: int, documents: int, seconds: float) -> int:
    """Return how many documents take STEP_S, as many took `seconds`: at most four times `ahead`, and at most AHEAD."""
    # At most four times as many as before: the first documents may have waited for a model to be loaded.
    return max(1, min(AHEAD, 4 * ahead, int(STEP_S * documents / max(seconds, 1e-6))))


def texts_of(keys: Sequence[int]) -> dict[int, str]:
    """Return title and text of documents, as retrievers and rerankers receive them."""
    rows = Document.objects.filter(pk__in=keys).values_list("pk", "title", "text")
    return {key: f"{title}\n{text}" if title else text for key, title, text in rows}


class VectorSearch(ABC, Generic[StoreType]):
    """A search over a model's representations of all documents of a collection."""

    ahead = AHEAD

    def __init__(self, recipe: Mapping[str, Any], store: StoreType) -> None:
        self.recipe, self.store = recipe, store
        self.keys, self.positions = np.empty(0, np.int64), np.empty(0, np.int64)

    @abstractmethod
    def add(self, texts: Sequence[str]) -> bool | None:
        """Compute and store documents' vectors. Return False when some are missing and should be tried again."""

    def follow_pace(self, documents: int, seconds: float) -> None:
        """Adapt `ahead` to the seconds that so many documents took."""

    def open_index(
        self, collection: Collection, probed: int | None, progress: Progress, should_stop: ShouldStop
    ) -> bool:
        """Open the index, if the search has one. Return False when the run was stopped."""
        return True

    def embed_documents(
        self, collection: Collection, progress: Progress, should_stop: ShouldStop, probed: int | None = None
    ) -> bool:
        """Compute the vectors that no machine has. Return False when the run was stopped.

        `probed`: the number of index lists that the same run searched before.
        """
        share_vectors(self.store)
        try:
            with connection.cursor() as cursor:
                cursor.execute(KEYS, [collection.pk])
                self.keys = np.array([key for (key,) in cursor.fetchall()], dtype=np.int64)
            digests: list[bytes] = []
            phase = _("document embeddings")
            progress(0, len(self.keys), phase)
            while len(digests) < len(self.keys):
                if should_stop():
                    return False
                batch = self.keys[len(digests) : len(digests) + AHEAD].tolist()
                text_of = texts_of(batch)
                texts = [self.recipe.get("document_prefix", "") + text_of[key] for key in batch]
                # A text is embedded once, however many documents it occurs in.
                while missing := [
                    text for text in dict.fromkeys(texts) if text_digest(text) not in self.store.positions
                ]:
                    started_at, step = perf_counter(), missing[: self.ahead]
                    if self.add(step) is not False:
                        self.follow_pace(len(step), perf_counter() - started_at)
                        progress(len(digests) + len(texts) - len(missing) + len(step), len(self.keys), phase)
                    if should_stop():
                        return False
                digests += map(text_digest, texts)
                progress(len(digests), len(self.keys), phase)
            self.positions = self.store.find(digests)
            return self.open_index(collection, probed, progress, should_stop)
        finally:
            publish_vectors(self.store)


class FolderVectors(VectorSearch[StoreType]):
    """A search whose model is in a folder and runs in this process."""

    ahead = FIRST
    together = SEARCHED  # Queries that are ranked in one pass.
    measuring_s = 0.0  # Seconds spent on measuring the recall.

    def follow_pace(self, documents: int, seconds: float) -> None:
        """Embed what takes STEP_S before the next update."""
        self.ahead = next_ahead(self.ahead, documents, seconds)

    @abstractmethod
    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        """Rank documents (primary keys) for any texts."""

    def keep_facts(self, run: Run) -> None:
        """Store the facts of the search for the run's page."""

    def rank_all(self, run: Run, progress: Progress, should_stop: ShouldStop) -> None:
        """Compute missing vectors, then rank the queries that have no ranking yet."""
        if not self.embed_documents(run.collection, progress, should_stop, run.search.get("probed")):
            return
        # The search also returns documents that a query excludes, so its depth is larger by their number.
        excluded = rankings.excluded_documents(run.collection)
        queries, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
        for start in range(0, len(queries), self.together):
            if should_stop():
                return
            batch = queries[start : start + self.together]
            progress(total - len(queries) + start, total, _("searching"))
            depths = [run.depth + len(excluded.get(query.pk, ())) for query in batch]
            started_at, measuring_before = perf_counter(), self.measuring_s
            results = self.rank_texts([query.text for query in batch], depths)
            # The seconds of a batch are divided equally among its queries.
            seconds = (perf_counter() - started_at - (self.measuring_s - measuring_before)) / len(batch)
            pairs = zip(batch, results, strict=True)
            rankings.store(run, {query.pk: RankedQuery(*ranking, seconds) for query, ranking in pairs})
            self.keep_facts(run)
        progress(total, total, _("searching"))


class IndexedVectors(VectorSearch[Store]):
    """A search by the cosine of dense vectors, with an index above LARGEST_EXACT documents."""

    nearest: VectorSearcher = NOTHING

    def open_index(
        self, collection: Collection, probed: int | None, progress: Progress, should_stop: ShouldStop
    ) -> bool:
        """Open the index. Return False when the run was stopped."""
        searcher = open_search(self.store, self.positions, collection, probed, progress, should_stop)
        self.nearest = searcher or self.nearest
        return searcher is not None

    def rank_vectors(self, vectors: Any, depths: Sequence[int]) -> list[NearestDocuments]:
        """Return documents (primary keys) and scores for the vectors of queries."""
        results = self.nearest.search(vectors, depths) if len(vectors) else []
        return [(self.keys[positions], scores) for positions, scores in results]
