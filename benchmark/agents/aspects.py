"""The aspects of queries with the documents that support them, by which answers are written and graded."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.agents.cutting import cut_text
from corpus.models import Collection, Document, Label
from corpus.models.aspects import Aspect
from judges.prompts.render import TEXT_LIMIT


@dataclass(frozen=True, slots=True)
class SoughtAspect:
    """An aspect for agents: id, text, importance, and ids of supporting documents."""

    id: str
    text: str
    importance: int
    documents: frozenset[str]

    @property
    def in_prompt(self) -> dict[str, Any]:
        """The aspect as it appears in prompts."""
        return {"id": self.id, "aspect": self.text[:TEXT_LIMIT], "weight": self.importance}


def load_query_aspects(collection: Collection, queries: Iterable[int]) -> dict[int, list[SoughtAspect]]:
    """Return the current aspects of these queries, in their order; omit queries without any."""
    rows = list(Aspect.objects.filter(query__in=list(queries), is_current=True).order_by("query", "place", "pk"))
    labels = Label.objects.filter(
        aspect__in=rows, grade__gte=collection.relevant_from, pair__document__is_current=True
    ).values_list("aspect", "pair__document__external_id")
    documents: dict[int, set[str]] = defaultdict(set)
    for aspect_key, document in labels:
        documents[aspect_key or 0].add(document)
    query_aspects: dict[int, list[SoughtAspect]] = defaultdict(list)
    for row in rows:
        aspect = SoughtAspect(row.external_id, row.text, row.importance, frozenset(documents[row.pk]))
        query_aspects[row.query_id].append(aspect)
    return dict(query_aspects)


def load_passages(collection: Collection, aspects: Sequence[SoughtAspect]) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return by document id: the text as agents see it, and the aspects it supports."""
    document_ids = {document for aspect in aspects for document in aspect.documents}
    rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=document_ids)
    texts = {
        document.external_id: f"{document.title}\n{document.text}" if document.title else document.text
        for document in rows
    }
    return {
        key: (cut_text(texts[key])[0], tuple(aspect.id for aspect in aspects if key in aspect.documents))
        for key in sorted(texts)
    }
