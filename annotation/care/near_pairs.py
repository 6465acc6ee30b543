"""Pairs that are nearly the same and carry different labels: one of the two labels is probably wrong."""

from collections import defaultdict
from dataclasses import dataclass

from annotation.exports.sets.near import DOCUMENT_WORDS, QUERY_WORDS, groups_of
from corpus.models import Collection, Document, Label, Query

QUERIES_ALIKE = 0.9
DOCUMENTS_ALIKE = 0.8
"""Jaccard similarity of shingles from which texts count as near-duplicates."""
MOST = 20_000
"""Newest labels that are compared: more would keep the page waiting."""
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Side:
    """One of the pairs: its row, texts and label."""

    pair: int
    query: str
    title: str
    document: str
    grade: int
    origin: str


@dataclass(frozen=True, slots=True)
class Near:
    """What was found. `groups`: near-duplicates, each with at least two labels, side by side."""

    groups: list[list[Side]]
    compared: int
    all: bool
    """Every label was compared."""


def near_pairs(collection: Collection) -> Near:
    """Groups of near-duplicate pairs whose labels differ; a whole answer of three statements."""
    labels = Label.objects.filter(pair__collection=collection, aspect=None).order_by("-pk")
    rows = list(labels.values_list("pair", "pair__query", "pair__document", "grade", "origin")[: MOST + 1])
    complete, rows = len(rows) <= MOST, rows[:MOST]
    queries = dict(Query.objects.filter(pk__in={row[1] for row in rows}).values_list("pk", "text"))
    documents = {
        pk: (title, text)
        for pk, title, text in Document.objects.filter(pk__in={row[2] for row in rows}).values_list(
            "pk", "title", "text"
        )
    }
    query_group = groups_of(queries, QUERIES_ALIKE, QUERY_WORDS)
    document_group = groups_of({pk: text for pk, (_, text) in documents.items()}, DOCUMENTS_ALIKE, DOCUMENT_WORDS)
    found: dict[tuple[int, int], list[Side]] = defaultdict(list)
    for pair, query, document, grade, origin in rows:
        side = Side(pair, queries[query], *documents[document], grade, origin)
        found[query_group[query], document_group[document]].append(side)
    mark = collection.relevant_from
    differing = [
        sorted(sides, key=lambda side: (-side.grade, side.pair))
        for sides in found.values()
        if len({side.grade >= mark for side in sides}) > 1
    ]
    return Near(sorted(differing, key=len, reverse=True)[:SHOWN], len(rows), complete)
