"""Retrievers for agents, which can search for any text: BM25, or the searcher behind a run of the collection."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents.cutting import Cut
from benchmark.agents.jobs import DatabaseThread
from benchmark.agents.protocol import FoundDocument
from benchmark.agents.traces import DOCUMENTS_PER_SEARCH
from benchmark.models import Run
from benchmark.runs import dense, embedding, rankings, sparse, static
from benchmark.runs.builders import Progress, ShouldStop, find_run
from benchmark.runs.vector_search import FolderVectors
from benchmark.runs.vectors import text_digest
from corpus.errors import BadInput
from corpus.models import Collection, Document
from corpus.search import bm25
from jobs.models import JobState
from judges.conversations.requests import Conversation
from judges.domain.verdicts import NoVerdict
from judges.errors import Unreachable
from judges.models import Campaign
from judges.prompts.answers.retrieval import vectors_of
from judges.records import Judge, Turn
from judges.retrieval import model_requests

CACHED = 5000  # Documents whose cut texts are cached, of some ten kilobytes each at most.
FOLDERS: dict[Run.Kind, Callable[[dict[str, Any]], FolderVectors[Any]]] = {
    Run.Kind.EMBEDDING: embedding.FolderSearch,
    Run.Kind.SPARSE: sparse.SparseSearch,
    Run.Kind.STATIC: static.StaticSearch,
}
SEARCHING = (Run.Kind.BM25, Run.Kind.DENSE, *FOLDERS)  # Kinds of run whose searcher takes any text.


class Retriever:
    """A search by any text that returns the primary keys of documents, best first."""

    async def prepare(self, conversation: Conversation, text: str, number: int) -> None:
        """Ask models for what the search needs, such as a vector. Raises Unreachable when no model answers."""

    def search(self, text: str, depth: int) -> Sequence[int]:
        """Return the ids of the `depth` best documents."""
        raise NotImplementedError


class LexicalRetriever(Retriever):
    """BM25 over the collection's documents."""

    def __init__(self, index: bm25.Index) -> None:
        self.index = index

    def search(self, text: str, depth: int) -> Sequence[int]:
        return [key for key, _score in self.index.search(text, depth)]


class DenseRetriever(Retriever):
    """A search by vectors of an embedding endpoint, which is asked for the vector of each text."""

    def __init__(self, searcher: dense.Dense) -> None:
        self.searcher, self.lock = searcher, threading.Lock()

    async def prepare(self, conversation: Conversation, text: str, number: int) -> None:
        sent = self.searcher.prefix + text

        def keep(turn: Turn) -> None:
            with self.lock:
                self.searcher.store.add([text_digest(sent)], vectors_of(turn, 1))

        # Vectors are stored by the digest of the text, since agents repeat their searches.
        if self.searcher.store.find([text_digest(sent)])[0] < 0:
            outcome = await conversation.embed(self.searcher.judge, sent, number, keep)
            if isinstance(outcome, NoVerdict):
                raise Unreachable(f"{self.searcher.judge.name}: {outcome.outcome}")

    def search(self, text: str, depth: int) -> Sequence[int]:
        with self.lock:
            ((documents, _scores),) = self.searcher.rank_known([self.searcher.prefix + text], [depth])
        return [int(key) for key in documents]


class FolderRetriever(Retriever):
    """A search by vectors that a model folder computes on this machine."""

    def __init__(self, searcher: FolderVectors[Any]) -> None:
        self.searcher, self.lock = searcher, threading.Lock()

    def search(self, text: str, depth: int) -> Sequence[int]:
        with self.lock:  # The model takes one text at a time.
            ((documents, _scores),) = self.searcher.rank_texts([text], [depth])
        return [int(key) for key in documents]


def check_retriever(collection: Collection, name: str) -> dict[str, Any]:
    """Return the kind and recipe of the run of this name, or of plain BM25. Raises BadInput."""
    run = find_run(collection, name)
    # Plain BM25 is available without a run.
    if run is None and name == Run.Kind.BM25:
        return {"name": name, "kind": str(Run.Kind.BM25), "recipe": {}}
    if run is None or run.state != JobState.READY or run.kind not in SEARCHING:
        rows = Run.objects.filter(collection=collection, is_deleted=False, state=JobState.READY, kind__in=SEARCHING)
        names = ", ".join(sorted({*rows.values_list("name", flat=True), str(Run.Kind.BM25)}))
        message = _("%(collection)s has no retriever %(name)s that can search for any text; there are: %(known)s")
        raise BadInput(message % {"collection": collection.name, "name": name, "known": names})
    # Spending limits do not change what a retriever finds.
    recipe = {key: value for key, value in run.recipe.items() if key not in ("budget", "max_calls")}
    return {"name": name, "kind": str(run.kind), "recipe": recipe, "run": run.pk}


def embedders_of(retrievers: Sequence[dict[str, Any]]) -> list[Judge]:
    """Return the judges that the retrievers ask for vectors, each once."""
    judge_names = [retriever["recipe"]["judge"] for retriever in retrievers if retriever["kind"] == Run.Kind.DENSE]
    return [model_requests.judge_for("embed", name) for name in dict.fromkeys(judge_names)]


def open_retriever(
    collection: Collection,
    retriever: dict[str, Any],
    campaign: Campaign,
    judges: Sequence[Judge],
    tell: Progress,
    should_stop: ShouldStop,
) -> Retriever | None:
    """Embed the documents if needed, and return the retriever ready to search; None if stopped meanwhile."""
    recipe = retriever["recipe"]
    if retriever["kind"] == Run.Kind.BM25:
        index = bm25.index_for(collection, k1=recipe.get("k1", bm25.K1), b=recipe.get("b", bm25.B))
        return LexicalRetriever(index)
    if retriever["kind"] in FOLDERS:
        folder = FOLDERS[Run.Kind(retriever["kind"])](recipe)
        return FolderRetriever(folder) if folder.embed_documents(collection, tell, should_stop) else None
    run = Run.objects.select_related("collection").get(pk=retriever["run"])
    embedder = next(judge for judge in judges if judge.name == recipe["judge"])
    searcher = dense.open_searcher(run, campaign, embedder, recipe, tell, should_stop)
    return None if searcher is None else DenseRetriever(searcher)


class RetrieverTool:
    """The search tool of an agent: a retriever's best documents with their cut texts, excluded documents left out."""

    def __init__(self, collection: Collection, retriever: Retriever, thread: DatabaseThread, cut: Cut) -> None:
        self.retriever, self.thread, self.cut = retriever, thread, cut
        self.excluded = rankings.excluded_documents(collection)
        self._cache: dict[int, FoundDocument] = {}

    async def find(self, conversation: Conversation, text: str, number: int) -> Sequence[FoundDocument]:
        """Return the best documents for a text; searching and reading run in the database thread."""
        await self.retriever.prepare(conversation, text, number)
        return await self.thread.run(self._read, conversation.subject.query, text)

    def _read(self, query: int, text: str) -> list[FoundDocument]:
        excluded = self.excluded.get(query, frozenset())
        # As many more as may be excluded, so that enough remain.
        keys = self.retriever.search(text, DOCUMENTS_PER_SEARCH + len(excluded))
        documents = self._load(keys)
        allowed = [documents[key] for key in keys if key in documents and documents[key].id not in excluded]
        return allowed[:DOCUMENTS_PER_SEARCH]

    def _load(self, keys: Sequence[int]) -> dict[int, FoundDocument]:
        """Return the cut documents by primary key, from a cache, since agents find the same ones repeatedly."""
        missing = [key for key in keys if key not in self._cache]
        # The cache is emptied as a whole: removing single entries would need their order of use.
        if len(self._cache) + len(missing) > CACHED:
            self._cache, missing = {}, list(keys)
        rows = Document.objects.filter(pk__in=missing).values_list("pk", "external_id", "title", "text")
        for key, name, title, text in rows if missing else ():
            self._cache[key] = FoundDocument(name, *self.cut(f"{title}\n{text}" if title else text))
        return self._cache
