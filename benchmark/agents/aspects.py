"""Queries' aspects with supporting documents, by which answers are written and graded."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.agents.cutting import cut_text
from benchmark.measures.aspects import QueryAspects
from corpus.models import Collection, Document, Label
from corpus.models.aspects import Aspect
from judges.prompts.agents import aspect_fields


@dataclass(frozen=True, slots=True)
class SoughtAspect:
    """An aspect for agents: id, text, importance, and ids of supporting documents."""

    id: str
    text: str
    importance: int
    documents: frozenset[str]

    @property
    def in_prompt(self) -> dict[str, Any]:
        """The aspect as prompts have it."""
        return aspect_fields(self.id, self.text, self.importance)


def load_query_aspects(collection: Collection, queries: Iterable[int]) -> dict[int, list[SoughtAspect]]:
    """Return the current aspects of these queries, in their order; omit queries without any."""
    rows = list(Aspect.objects.filter(query__in=list(queries), is_current=True).order_by("query", "place", "pk"))
    labels = Label.objects.filter(
        aspect__in=rows, grade__gte=collection.relevant_from, pair__document__is_current=True
    ).values_list("aspect", "pair__document__external_id")
    documents: dict[int, set[str]] = defaultdict(set)
    for aspect, document in labels:
        documents[aspect or 0].add(document)
    found: dict[int, list[SoughtAspect]] = defaultdict(list)
    for row in rows:
        one = SoughtAspect(row.external_id, row.text, row.importance, frozenset(documents[row.pk]))
        found[row.query_id].append(one)
    return dict(found)


def sought_by(aspects: Sequence[SoughtAspect]) -> QueryAspects:
    """The aspects as the measures of rankings take them."""
    return QueryAspects.of([(one.importance, sorted(one.documents)) for one in aspects])


def load_passages(collection: Collection, aspects: Sequence[SoughtAspect]) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return by document id: the text as agents see it, and the aspects it supports."""
    wanted = {document for one in aspects for document in one.documents}
    rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=wanted)
    texts = {one.external_id: f"{one.title}\n{one.text}" if one.title else one.text for one in rows}
    return {
        key: (cut_text(texts[key])[0], tuple(one.id for one in aspects if key in one.documents))
        for key in sorted(texts)
    }
