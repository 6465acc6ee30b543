"""What all searches over vectors share: the documents' vectors are computed or asked for once, then queries ranked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.shared_vectors import publish_vectors, share_vectors
from benchmark.runs.vector_index import NOTHING, VectorSearcher, open_search
from benchmark.runs.vectors import Found, Places, Store, TextStore, text_digest
from corpus.models import Collection, Document

SEARCHED = 512  # Queries of one pass over all vectors: a pass reads them from the file.
AHEAD = 1024  # Documents whose vectors are made before anything else happens, at most.
Kept = TypeVar("Kept", bound=TextStore)

# Of equal scores the search keeps the earlier document, and trec_eval the one whose id is higher.
KEYS = """
SELECT id FROM corpus_document WHERE collection_id = %s AND is_current ORDER BY external_id COLLATE "C" DESC
"""


def document_keys(collection: Collection) -> Places:
    """Return primary keys of the current documents, by document id descending."""
    with connection.cursor() as cursor:
        cursor.execute(KEYS, [collection.pk])
        return np.array([key for (key,) in cursor.fetchall()], dtype=np.int64)


def texts_of(keys: Sequence[int]) -> dict[int, str]:
    """Title and text of documents, as retrievers and rerankers get them."""
    rows = Document.objects.filter(pk__in=keys).values_list("pk", "title", "text")
    return {key: f"{title}\n{text}" if title else text for key, title, text in rows}


class VectorSearch(ABC, Generic[Kept]):
    """A search over what a model made of all documents of a collection."""

    ahead = AHEAD

    def __init__(self, recipe: Mapping[str, Any], store: Kept) -> None:
        self.recipe, self.store = recipe, store
        self.keys, self.places = np.empty(0, np.int64), np.empty(0, np.int64)

    @abstractmethod
    def add(self, texts: Sequence[str]) -> bool | None:
        """Compute and keep documents' vectors. False: some are missing, so look once more."""

    def open_index(self, collection: Collection, probed: int | None, progress: Tell, stopped: Stopped) -> bool:
        """Make ready what searches. False when the run was stopped meanwhile."""
        return True

    def embed_documents(
        self, collection: Collection, progress: Tell, stopped: Stopped, probed: int | None = None
    ) -> bool:
        """Make the vectors that no machine has. False when the run was stopped meanwhile.

        `probed`: how much of an index the same run searched before.
        """
        share_vectors(self.store)
        try:
            self.keys, digests = document_keys(collection), list[bytes]()
            progress(0, len(self.keys), _("document embeddings"))
            while len(digests) < len(self.keys):
                if stopped():
                    return False
                part = self.keys[len(digests) : len(digests) + self.ahead].tolist()
                known = texts_of(part)
                texts = [self.recipe.get("document_prefix", "") + known[key] for key in part]
                # A text is embedded once, however many documents have it.
                missing = [text for text in dict.fromkeys(texts) if text_digest(text) not in self.store.places]
                if missing and self.add(missing) is False:
                    continue
                digests += map(text_digest, texts)
                progress(len(digests), len(self.keys), _("document embeddings"))
            self.places = self.store.find(digests)
            return self.open_index(collection, probed, progress, stopped)
        finally:
            publish_vectors(self.store)


class FolderVectors(VectorSearch[Kept]):
    """A search whose model lies in a folder and is asked in this process."""

    together = SEARCHED  # Queries that are ranked in one pass.
    measuring_s = 0.0  # Seconds that went into measuring the search, and not into searching.

    @abstractmethod
    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[Found]:
        """Rank documents (primary keys) for any texts."""

    def keep_facts(self, run: Run) -> None:
        """Store what a run's page says of the search."""

    def rank_all(self, run: Run, progress: Tell, stopped: Stopped) -> None:
        """Compute the vectors that VAR lacks, then rank the queries that have no ranking yet."""
        if not self.embed_documents(run.collection, progress, stopped, run.search.get("probed")):
            return
        # Documents that a query excludes are found all the same, so more are asked for.
        left_out = rankings.excluded_documents(run.collection)
        waiting, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
        for at in range(0, len(waiting), self.together):
            if stopped():
                return
            batch = waiting[at : at + self.together]
            progress(total - len(waiting) + at, total, _("searching"))
            depths = [run.depth + len(left_out.get(query.pk, ())) for query in batch]
            begin, measured = perf_counter(), self.measuring_s
            found = self.rank_texts([query.text for query in batch], depths)
            # The seconds of a batch are shared by its queries.
            seconds = (perf_counter() - begin - (self.measuring_s - measured)) / len(batch)
            pairs = zip(batch, found, strict=True)
            rankings.store(run, {query.pk: RankedQuery(*of_query, seconds) for query, of_query in pairs})
            self.keep_facts(run)
        progress(total, total, _("searching"))


class IndexedVectors(VectorSearch[Store]):
    """A search by the cosine of dense vectors, above some number of documents by an index."""

    nearest: VectorSearcher = NOTHING

    def open_index(self, collection: Collection, probed: int | None, progress: Tell, stopped: Stopped) -> bool:
        """Open the search. False when it was stopped meanwhile."""
        found = open_search(self.store, self.places, collection, probed, progress, stopped)
        self.nearest = found or self.nearest
        return found is not None

    def rank_vectors(self, vectors: Any, depths: Sequence[int]) -> list[Found]:
        """Return documents (primary keys) and scores for the vectors of queries."""
        found = self.nearest.search(vectors, depths) if len(vectors) else []
        return [(self.keys[places], scores) for places, scores in found]
