"""Contexts of a generator: the texts of a run's first k documents, or the evidence written about them."""

from collections.abc import Sequence
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
    """The contexts of an answer, best first; `evidence` is empty if the documents themselves are shown."""

    documents: tuple[int, ...]
    texts: tuple[str, ...]  # Of the documents; one character longer than the limit if they are cut.
    evidence: tuple[str, ...] = ()
    left_out: int = 0  # Documents without evidence.

    @property
    def shown(self) -> tuple[str, ...]:
        """The texts in the prompt."""
        return self.evidence or self.texts

    @property
    def document_length(self) -> int:
        """The number of words in the documents, up to the limit."""
        return sum(count_tokens(text[:CONTEXT_LIMIT]) for text in self.texts)

    @property
    def context_length(self) -> int:
        """The number of words in the shown texts, up to the limit."""
        return sum(count_tokens(text[:CONTEXT_LIMIT]) for text in self.shown)


def load_contexts(
    runs: Sequence[Run], queries: Sequence[Query], k: int, kind: str
) -> dict[tuple[int, int], ShownContexts]:
    """Return the run's first `k` documents in its order, or the evidence written about them, by run and query."""
    rows = Ranking.objects.filter(run__in=runs, query__in=queries).values_list("run", "query", "documents")
    ranked = {(run, query): documents[:k] for run, query, documents in rows}
    top = {(run.pk, query.pk): ranked.get((run.pk, query.pk), []) for run in runs for query in queries}
    # Cut by PostgreSQL, since a document may have megabytes; one character beyond the limit shows that it was cut.
    shown = Document.objects.filter(pk__in={key for documents in top.values() for key in documents})
    texts = {
        key: (f"{title}\n{text}" if title else text)[: CONTEXT_LIMIT + 1]
        for key, title, text in shown.values_list("pk", "title", Left("text", CONTEXT_LIMIT + 1))
    }
    if kind == DOCUMENT:
        return {
            cell: ShownContexts(tuple(documents), tuple(texts[key] for key in documents))
            for cell, documents in top.items()
        }
    # A reranking run has its own evidence, which its system would show; other runs take the judges' evidence.
    query_keys, document_keys = {query for _run, query in top}, {key for keys in top.values() for key in keys}
    pairs = Pair.objects.filter(query__in=query_keys, document__in=document_keys)
    pair_keys = {
        pair: (query, document) for pair, query, document in pairs.values_list("pk", "query_id", "document_id")
    }
    judges_evidence = {pair_keys[pair]: text for pair, text in evidence_of(pair_keys).items()}
    reranker_evidence = {run.pk: reranking.load_evidence(run, queries) for run in runs}
    contexts = {}
    for (run, query), documents in top.items():
        evidence = reranker_evidence[run]
        if evidence is None:
            evidence = judges_evidence
        keys = [key for key in documents if (query, key) in evidence]
        contexts[run, query] = ShownContexts(
            documents=tuple(keys),
            texts=tuple(texts[key] for key in keys),
            evidence=tuple(evidence[query, key] for key in keys),
            left_out=len(documents) - len(keys),
        )
    return contexts
