"""Measures of the searches that an agent made for one query (its trace): gold that they returned, and repetitions.

A gold document supports one of the aspects of the query. Each search of a trace returns a list of documents, and each
position of such a list is a slot. A document that an earlier slot contains is repeated: it takes up a slot without
adding anything (BRIGHT-Pro 6.3 and figure 9). The module computes and reads no database.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from benchmark.measures.aspects import QueryAspects, alpha_ndcg

DOCUMENTS_PER_SEARCH = 5  # The number of documents that an agent receives from one search.


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """What the searches of one trace returned."""

    gold_shares: tuple[float, ...]  # For each search, the share of its slots with gold; 0 if it returned nothing.
    searches_without_gold: int  # Searches that returned no gold document, neither a new one nor a repeated one.
    slots: int  # Number of slots of all searches.
    repeated_slots: int  # Number of slots with a repeated document.
    searches_after_last_gold: int  # Searches after the last one that returned new gold; all searches if none did.


def measure_searches(searches: Sequence[Sequence[str]], gold: AbstractSet[str]) -> SearchFindings:
    """Return what the searches of one trace returned.

    `searches` contains, for each search, the ids of the documents that it returned. `gold` contains the ids of the
    gold documents of the query.
    """
    gold_shares: list[float] = []
    seen_documents: set[str] = set()
    repeated_slots = 0
    last_search_with_new_gold = 0
    for search_number, documents in enumerate(searches, 1):
        # Repeated gold counts in the share, but only new gold counts in `last_search_with_new_gold`.
        gold_slots = sum(document in gold for document in documents)
        gold_shares.append(gold_slots / len(documents) if documents else 0.0)
        for document in documents:
            if document in seen_documents:
                repeated_slots += 1
            elif document in gold:
                last_search_with_new_gold = search_number
            seen_documents.add(document)
    return SearchFindings(
        gold_shares=tuple(gold_shares),
        searches_without_gold=sum(gold.isdisjoint(documents) for documents in searches),
        slots=sum(len(documents) for documents in searches),
        repeated_slots=repeated_slots,
        searches_after_last_gold=len(searches) - last_search_with_new_gold,
    )


def find_unreached_aspects(
    searches: Sequence[Sequence[str]], documents_by_aspect: Mapping[str, AbstractSet[str]]
) -> list[str]:
    """Return the ids of the aspects for which no search returned a supporting document.

    `documents_by_aspect` contains the ids of the documents that support each aspect, by the id of the aspect. The
    result has the same order.
    """
    returned_documents = {document for documents in searches for document in documents}
    return [
        aspect
        for aspect, supporting_documents in documents_by_aspect.items()
        if returned_documents.isdisjoint(supporting_documents)
    ]


class AgentNdcg(NamedTuple):
    """Alpha-nDCG of the joined lists of all searches of a trace."""

    with_repeats: float  # Repeated documents keep their positions, at which they gain nothing.
    without_repeats: float  # Repeated documents are removed, so that the documents below them move up.


def measure_ndcg(searches: Sequence[Sequence[str]], aspects: QueryAspects) -> AgentNdcg:
    """Return alpha-nDCG of the joined lists, to a depth of DOCUMENTS_PER_SEARCH for each search."""
    ranking = [document for documents in searches for document in documents]
    unique_ranking = list(dict.fromkeys(ranking))
    # The depth grows with the number of searches, so that the whole list of an agent that searched more is measured.
    depth = DOCUMENTS_PER_SEARCH * max(1, len(searches))
    return AgentNdcg(
        with_repeats=alpha_ndcg(ranking, aspects, depth),
        without_repeats=alpha_ndcg(unique_ranking, aspects, depth),
    )
