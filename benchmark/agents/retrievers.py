"""Retrievers for agents: what can search for any text. BM25, or the searcher that made a run of the collection."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents.cutting import Cut
from benchmark.agents.jobs import DatabaseThread
from benchmark.agents.protocol import FoundDocument
from benchmark.agents.traces import TOP
from benchmark.models import Run
from benchmark.runs import dense, embedding, rankings, sparse
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
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.answers import vectors_of

KEPT = 5000  # Documents whose cut texts are kept, of some ten kilobytes each at most.
FOLDERS: dict[Run.Kind, Callable[[dict[str, Any]], FolderVectors[Any]]] = {
    Run.Kind.EMBEDDING: embedding.FolderSearch,
    Run.Kind.SPARSE: sparse.SparseSearch,
}
SEARCHING = (Run.Kind.BM25, Run.Kind.DENSE, *FOLDERS)  # Runs whose searcher takes any text.


class Retriever:
    """A search for documents (primary keys, best first) by any text."""

    async def prepare(self, conversation: Conversation, text: str, number: int) -> None:
        """Ask models for what the search needs. Raises Unreachable when nobody answers."""

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
    """The vectors of an embed endpoint: each search asks for one, by its campaign."""

    def __init__(self, searcher: dense.Dense) -> None:
        self.searcher, self.lock = searcher, threading.Lock()

    async def prepare(self, conversation: Conversation, text: str, number: int) -> None:
        sent = self.searcher.prefix + text

        def keep(turn: Turn) -> None:
            with self.lock:
                self.searcher.store.add([text_digest(sent)], vectors_of(turn, 1))

        # Vectors are kept by the digest of the text: agents ask the same thing again.
        if self.searcher.store.find([text_digest(sent)])[0] < 0:
            found = await conversation.embed(self.searcher.judge, sent, number, keep)
            if isinstance(found, NoVerdict):
                raise Unreachable(f"{self.searcher.judge.name}: {found.outcome}")

    def search(self, text: str, depth: int) -> Sequence[int]:
        with self.lock:
            ((documents, _scores),) = self.searcher.rank_known([self.searcher.prefix + text], [depth])
        return [int(key) for key in documents]


class FolderRetriever(Retriever):
    """The vectors of a model folder, computed here."""

    def __init__(self, searcher: FolderVectors[Any]) -> None:
        self.searcher, self.lock = searcher, threading.Lock()

    def search(self, text: str, depth: int) -> Sequence[int]:
        with self.lock:  # The model takes one text at a time.
            ((documents, _scores),) = self.searcher.rank_texts([text], [depth])
        return [int(key) for key in documents]


def check_retriever(collection: Collection, name: str) -> dict[str, Any]:
    """Return the kind and recipe of the run of this name, or plain BM25's. Raises BadInput."""
    run = find_run(collection, name)
    # Without a run the plain BM25 is always there.
    if run is None and name == Run.Kind.BM25:
        return {"name": name, "kind": str(Run.Kind.BM25), "recipe": {}}
    if run is None or run.state != JobState.READY or run.kind not in SEARCHING:
        rows = Run.objects.filter(collection=collection, is_deleted=False, state=JobState.READY, kind__in=SEARCHING)
        known = ", ".join(sorted({*rows.values_list("name", flat=True), str(Run.Kind.BM25)}))
        told = _("%(collection)s has no retriever %(name)s that can search for any text; there are: %(known)s")
        raise BadInput(told % {"collection": collection.name, "name": name, "known": known})
    # Limits are no part of what it finds.
    recipe = {key: value for key, value in run.recipe.items() if key not in ("budget", "max_calls")}
    return {"name": name, "kind": str(run.kind), "recipe": recipe, "run": run.pk}


def embedders_of(retrievers: Sequence[dict[str, Any]]) -> list[Judge]:
    """The judges that the retrievers ask for vectors."""
    # Two runs may ask the same embedder.
    named = [one["recipe"]["judge"] for one in retrievers if one["kind"] == Run.Kind.DENSE]
    return [model_requests.judge_for("embed", name) for name in dict.fromkeys(named)]


def open_retriever(
    collection: Collection,
    given: dict[str, Any],
    campaign: Campaign,
    judges: Sequence[Judge],
    tell: Progress,
    stopped: ShouldStop,
) -> Retriever | None:
    """The retriever, ready to search; None when the work was stopped meanwhile. Documents are embedded first."""
    recipe = given["recipe"]
    if given["kind"] == Run.Kind.BM25:
        index = bm25.index_for(collection, k1=recipe.get("k1", bm25.K1), b=recipe.get("b", bm25.B))
        return LexicalRetriever(index)
    if given["kind"] in FOLDERS:
        folder = FOLDERS[Run.Kind(given["kind"])](recipe)
        return FolderRetriever(folder) if folder.embed_documents(collection, tell, stopped) else None
    run = Run.objects.select_related("collection").get(pk=given["run"])
    judge = next(one for one in judges if one.name == recipe["judge"])
    searcher = dense.open_searcher(run, campaign, judge, recipe, tell, stopped)
    return None if searcher is None else DenseRetriever(searcher)


class RetrieverTool:
    """The one tool of an agent: the best documents of a retriever with their texts, cut, excluded ones left out."""

    def __init__(self, collection: Collection, retriever: Retriever, thread: DatabaseThread, cut: Cut) -> None:
        self.retriever, self.thread, self.cut = retriever, thread, cut
        self.excluded = rankings.excluded_documents(collection)
        self._known: dict[int, FoundDocument] = {}

    async def find(self, conversation: Conversation, text: str, number: int) -> Sequence[FoundDocument]:
        """Search, and read the texts, off the loop that the calls run on."""
        await self.retriever.prepare(conversation, text, number)
        return await self.thread.run(self._read, conversation.subject.query, text)

    def _read(self, query: int, text: str) -> list[FoundDocument]:
        left_out = self.excluded.get(query, frozenset())
        # As many more as may have to be left out, so that enough remain.
        keys = self.retriever.search(text, TOP + len(left_out))
        known = self._load(keys)
        return [known[key] for key in keys if key in known and known[key].id not in left_out][:TOP]

    def _load(self, keys: Sequence[int]) -> dict[int, FoundDocument]:
        """The documents by primary key, cut; agents find the same ones again and again."""
        missing = [key for key in keys if key not in self._known]
        # Emptied as a whole: a cache that sheds single entries would need their order of use.
        if len(self._known) + len(missing) > KEPT:
            # Those that were known are read again, because they went with the rest.
            self._known, missing = {}, list(keys)
        rows = Document.objects.filter(pk__in=missing).values_list("pk", "external_id", "title", "text")
        for key, name, title, text in rows if missing else ():
            self._known[key] = FoundDocument(name, *self.cut(f"{title}\n{text}" if title else text))
        return self._known
