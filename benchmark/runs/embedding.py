"""Runs by an embedding model in a folder: its vectors, kept in VAR, are searched (RTriever 5.2).

settings.LOCAL_EMBEDDERS, a module of the app above, opens the model. Vectors are kept by the hash of its weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.dense import AHEAD, SEARCHED, document_keys, texts_of
from benchmark.runs.model_folders import check_weights, hash_weights, model_folder
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.shared_vectors import publish_vectors, share_vectors
from benchmark.runs.vector_index import NOTHING, VectorSearcher, keep_facts, open_search
from benchmark.runs.vectors import Found, Store, TextStore, Vectors, text_digest, vectors_folder
from corpus.errors import BadInput
from corpus.models import Collection, Query
from judges.records import Judge

KEYS = ("model", "query_prefix", "document_prefix", "device")
Kept = TypeVar("Kept", bound=TextStore)


class TextEncoder(Protocol):
    """A model that turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return vectors (n, size), and how many tokens were read."""


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`model` (a folder), `query_prefix` (else the model's own), `document_prefix`, `device`. Raises BadInput."""
    folder = model_folder(recipe, KEYS)
    embedders = import_module(settings.LOCAL_EMBEDDERS)
    if not (folder / "config.json").exists() or not embedders.is_embedder(folder):
        raise BadInput(_("%(folder)s is not the folder of an embedding model") % {"folder": folder})
    return {
        "model": str(folder),
        "weights": hash_weights(folder),
        "query_prefix": str(recipe.get("query_prefix") or embedders.read_query_prefix(folder)),
        "document_prefix": str(recipe.get("document_prefix") or ""),
        "device": str(recipe.get("device") or "cpu"),
    }


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Embed the documents that VAR lacks, then rank the queries that have no ranking yet."""
    check_weights(run.recipe)
    rank_all(run, FolderSearch(run.recipe), progress, stopped)


def rank_all(run: Run, search: "VectorSearch[Any]", progress: Tell, stopped: Stopped, together: int = SEARCHED) -> None:
    """Compute the vectors that VAR lacks, then rank the queries that have no ranking yet, `together` at a time."""
    if not search.embed_documents(run.collection, progress, stopped, run.search.get("probed")):
        return
    # Documents that a query excludes are found all the same, so more are asked for.
    left_out = rankings.excluded_documents(run.collection)
    waiting, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
    for at in range(0, len(waiting), together):
        if stopped():
            return
        batch = waiting[at : at + together]
        progress(total - len(waiting) + at, total, _("searching"))
        rankings.store(run, search.rank(batch, [run.depth + len(left_out.get(query.pk, ())) for query in batch]))
        search.keep_facts(run)
    progress(total, total, _("searching"))


class VectorSearch(ABC, Generic[Kept]):
    """A search over what the model of a folder made of all documents of a collection."""

    measuring_s = 0.0  # Seconds that went into measuring the search, and not into searching.

    def __init__(self, recipe: Mapping[str, Any], store: Kept) -> None:
        self.recipe, self.store = recipe, store
        self.keys, self.places = np.empty(0, np.int64), np.empty(0, np.int64)

    @abstractmethod
    def add(self, texts: Sequence[str]) -> None:
        """Compute and keep the vectors of documents."""

    @abstractmethod
    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[Found]:
        """Rank documents (primary keys) for any texts."""

    def open_index(self, collection: Collection, probed: int | None, progress: Tell, stopped: Stopped) -> bool:
        """Make ready what searches. False when the run was stopped meanwhile."""
        return True

    def keep_facts(self, run: Run) -> None:
        """Store what a run's page says of the search."""

    def embed_documents(
        self, collection: Collection, progress: Tell, stopped: Stopped, probed: int | None = None
    ) -> bool:
        """Compute the vectors that no machine has. False when the run was stopped meanwhile.

        `probed`: how much of an index the same run searched before.
        """
        share_vectors(self.store)
        try:
            return self._embed_documents(collection, progress, stopped, probed)
        finally:
            publish_vectors(self.store)

    def _embed_documents(self, collection: Collection, progress: Tell, stopped: Stopped, probed: int | None) -> bool:
        self.keys, digests = document_keys(collection), list[bytes]()
        for begin in range(0, len(self.keys), AHEAD):
            if stopped():
                return False
            part = self.keys[begin : begin + AHEAD].tolist()
            known = texts_of(part)
            texts = [self.recipe.get("document_prefix", "") + known[key] for key in part]
            # A text is embedded once, however many documents have it.
            missing = list(dict.fromkeys(text for text in texts if text_digest(text) not in self.store.places))
            if missing:
                self.add(missing)
            digests += map(text_digest, texts)
            progress(len(digests), len(self.keys), _("document embeddings"))
        self.places = self.store.find(digests)
        return self.open_index(collection, probed, progress, stopped)

    def rank(self, queries: Sequence[Query], depths: Sequence[int]) -> dict[int, RankedQuery]:
        """Rank documents by score. The seconds of a batch are shared by its queries."""
        begin, measured = perf_counter(), self.measuring_s
        found = self.rank_texts([query.text for query in queries], depths)
        seconds = (perf_counter() - begin - (self.measuring_s - measured)) / len(queries)
        return {
            query.pk: RankedQuery(documents, scores, seconds)
            for query, (documents, scores) in zip(queries, found, strict=True)
        }


class FolderSearch(VectorSearch[Store]):
    """A search by the cosine of dense vectors."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        super().__init__(recipe, Store(vectors_folder(), named_by_weights(recipe)))
        embedders = import_module(settings.LOCAL_EMBEDDERS)
        self.model: TextEncoder = embedders.open_embedder(Path(recipe["model"]), recipe["device"])
        self.nearest: VectorSearcher = NOTHING

    def add(self, texts: Sequence[str]) -> None:
        """Embed documents and store their vectors."""
        self.store.add([text_digest(text) for text in texts], self.model.encode(texts)[0])

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[Found]:
        """Rank documents (primary keys) for any texts."""
        vectors, _tokens = self.model.encode([self.recipe["query_prefix"] + text for text in texts])
        found = self.nearest.search(vectors, depths)
        self.measuring_s = self.nearest.measuring_s
        return [(self.keys[places], scores) for places, scores in found]

    def open_index(self, collection: Collection, probed: int | None, progress: Tell, stopped: Stopped) -> bool:
        """Open the search, above some number of documents by an index. False when it was stopped meanwhile."""
        found = open_search(self.store, self.places, collection, probed, progress, stopped)
        self.nearest = found or self.nearest
        return found is not None

    def keep_facts(self, run: Run) -> None:
        """Store how many lists of the index were searched, and the recall."""
        keep_facts(run, self.nearest)


def named_by_weights(recipe: Mapping[str, Any], provider: str = "folder") -> Judge:
    """The name of a folder's vectors, as those of a judge are named: what decides them is the weights."""
    return Judge(name=Path(recipe["model"]).name, provider=provider, model=recipe["weights"], id=0)
