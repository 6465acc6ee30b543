"""Contexts of a generator: the texts of a run's first k documents, or the evidence written of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models.functions import Left

from benchmark.models import Ranking, Run
from benchmark.runs import reranking
from corpus.evidence.measures import count_tokens
from corpus.evidence.targets import evidence_of
from corpus.models import Document, Pair, Query
from judges.prompts.conversations import CONTEXT_LIMIT

DOCUMENT, EVIDENCE = "document", "evidence"

Places = Mapping[tuple[int, int], Sequence[int]]  # (run, query) -> documents, best first.


@dataclass(frozen=True, slots=True)
class ShownContexts:
    """The contexts of one answer, best first. `evidence` is empty where documents are shown as they are."""

    documents: tuple[int, ...]
    texts: tuple[str, ...]  # Of the documents; one letter longer than the limit where they are cut.
    evidence: tuple[str, ...] = ()
    left_out: int = 0  # Documents without evidence.

    @property
    def shown(self) -> tuple[str, ...]:
        """The texts that stand in the prompt."""
        return self.evidence or self.texts

    @property
    def document_length(self) -> int:
        """Words of the documents, as cut."""
        return sum(count_tokens(text[:CONTEXT_LIMIT]) for text in self.texts)

    @property
    def context_length(self) -> int:
        """Words of what is shown."""
        return sum(count_tokens(text[:CONTEXT_LIMIT]) for text in self.shown)


def load_contexts(
    runs: Sequence[Run], queries: Sequence[Query], k: int, kind: str
) -> dict[tuple[int, int], ShownContexts]:
    """Return by run and query the first `k` documents (or evidence) of the run, in its order."""
    places = _first_documents(runs, queries, k)
    texts = _cut_texts({key for documents in places.values() for key in documents})
    if kind == DOCUMENT:
        return {
            place: ShownContexts(tuple(documents), tuple(texts[key] for key in documents))
            for place, documents in places.items()
        }
    return _evidence_contexts(runs, queries, places, texts)


def _evidence_contexts(
    runs: Sequence[Run], queries: Sequence[Query], places: Places, texts: Mapping[int, str]
) -> dict[tuple[int, int], ShownContexts]:
    """Show what a run's own reranker wrote of its documents; where it wrote nothing, the collection's evidence."""
    # Evidence of the run's own reranker is what its system would show; a judge's evidence only stands in for it.
    common = _evidence_by_pair(places)
    own = {run.pk: reranking.load_evidence(run, queries) for run in runs}
    written = {run: common if found is None else found for run, found in own.items()}
    return {
        (run, query): _shown_evidence(query, documents, texts, written[run])
        for (run, query), documents in places.items()
    }


def _first_documents(runs: Sequence[Run], queries: Sequence[Query], k: int) -> dict[tuple[int, int], list[int]]:
    rows = Ranking.objects.filter(run__in=runs, query__in=queries).values_list("run", "query", "documents")
    found = {(run, query): documents[:k] for run, query, documents in rows}
    return {(run.pk, query.pk): found.get((run.pk, query.pk), []) for run in runs for query in queries}


def _cut_texts(keys: Iterable[int]) -> dict[int, str]:
    """Title and text of documents, no longer than one letter above the limit."""
    # Cut by PostgreSQL, since a document may have megabytes; the one letter beyond the limit tells that it was cut.
    rows = Document.objects.filter(pk__in=keys).values_list("pk", "title", Left("text", CONTEXT_LIMIT + 1))
    return {key: (f"{title}\n{text}" if title else text)[: CONTEXT_LIMIT + 1] for key, title, text in rows}


def _evidence_by_pair(places: Places) -> dict[tuple[int, int], str]:
    documents = {key for keys in places.values() for key in keys}
    pairs = Pair.objects.filter(query__in={query for _run, query in places}, document__in=documents)
    by_key = {key: (query, document) for key, query, document in pairs.values_list("pk", "query_id", "document_id")}
    return {by_key[key]: text for key, text in evidence_of(by_key).items()}


def _shown_evidence(
    query: int, documents: Sequence[int], texts: Mapping[int, str], written: Mapping[tuple[int, int], str]
) -> ShownContexts:
    kept = [key for key in documents if (query, key) in written]
    return ShownContexts(
        tuple(kept),
        tuple(texts[key] for key in kept),
        tuple(written[query, key] for key in kept),
        len(documents) - len(kept),
    )
