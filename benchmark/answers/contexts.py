"""Contexts of a generator: texts of a run's first k documents, or their written evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models.functions import Left

from benchmark.models import Ranking, Run
from benchmark.runs import reranking
from corpus.evidence.measures import count_tokens
from corpus.evidence.targets import evidence_of
from corpus.models import Document, Pair, Query
from judges.prompts.conversations import CONTEXT_LIMIT

DOCUMENT, EVIDENCE = "document", "evidence"


@dataclass(frozen=True, slots=True)
class ShownContexts:
    """The contexts of an answer, best first. `evidence`: empty for documents as they are."""

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
    """Return by run and query the first `k` documents of the run, in its order, or the evidence written of them."""
    rows = Ranking.objects.filter(run__in=runs, query__in=queries).values_list("run", "query", "documents")
    ranked = {(run, query): documents[:k] for run, query, documents in rows}
    places = {(run.pk, query.pk): ranked.get((run.pk, query.pk), []) for run in runs for query in queries}
    # Cut by PostgreSQL, since a document may have megabytes; the one letter beyond the limit tells that it was cut.
    shown = Document.objects.filter(pk__in={key for documents in places.values() for key in documents})
    texts = {
        key: (f"{title}\n{text}" if title else text)[: CONTEXT_LIMIT + 1]
        for key, title, text in shown.values_list("pk", "title", Left("text", CONTEXT_LIMIT + 1))
    }
    if kind == DOCUMENT:
        return {
            place: ShownContexts(tuple(documents), tuple(texts[key] for key in documents))
            for place, documents in places.items()
        }
    # Evidence of the run's own reranker is what its system would show; a judge's evidence only stands in for it.
    common = _evidence_by_pair(places)
    own = {run.pk: reranking.load_evidence(run, queries) for run in runs}
    written = {run: common if found is None else found for run, found in own.items()}
    found = {}
    for (run, query), documents in places.items():
        kept = [key for key in documents if (query, key) in written[run]]
        evidence = tuple(written[run][query, key] for key in kept)
        left_out = len(documents) - len(kept)
        found[run, query] = ShownContexts(tuple(kept), tuple(texts[key] for key in kept), evidence, left_out)
    return found


def _evidence_by_pair(places: Mapping[tuple[int, int], Sequence[int]]) -> dict[tuple[int, int], str]:
    documents = {key for keys in places.values() for key in keys}
    pairs = Pair.objects.filter(query__in={query for _run, query in places}, document__in=documents)
    by_key = {key: (query, document) for key, query, document in pairs.values_list("pk", "query_id", "document_id")}
    return {by_key[key]: text for key, text in evidence_of(by_key).items()}
