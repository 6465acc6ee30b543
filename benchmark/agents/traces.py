"""Measures of one trace's searches: gold by round, repeats, aspects never reached, rounds without new gold. Pure.

Gold is a document that supports one of the query's aspects. A slot is a position in a round's list;
a repeated document takes up a slot and adds nothing (BRIGHT-Pro 6.3 and figure 9).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from benchmark.measures.aspects import QueryAspects, alpha_ndcg

DOCUMENTS_PER_ROUND = 5  # The number of documents that an agent receives from one search.


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """Figures of one trace's searches."""

    gold_shares: tuple[float, ...]  # Share of each round's slots with gold, in order; 0 if the round returned nothing.
    rounds_without_gold: int  # Rounds that returned no gold, neither new nor repeated.
    slots: int  # Slots of all rounds.
    repeated_slots: int  # Slots whose document had already appeared in an earlier slot.
    rounds_after_last_gold: int  # Rounds after the last one that returned new gold; all rounds if none did.


class AgentNdcg(NamedTuple):
    """Alpha-nDCG of a trace's joined lists, of which repeated documents are a part or not."""

    with_repeats: float  # Repeated documents keep their positions, where they gain nothing.
    without_repeats: float  # Only the first occurrence of each document is counted.


def measure_searches(rounds: Sequence[Sequence[str]], gold: AbstractSet[str]) -> SearchFindings:
    """Return the figures of one trace. `rounds`: for each search, the ids of the documents that it returned."""
    gold_shares: list[float] = []
    seen_documents: set[str] = set()
    repeated_slots = 0
    last_gold_round = 0
    for number, documents in enumerate(rounds, 1):
        # The share also counts repeated gold, whereas only new gold moves `last_gold_round`.
        gold_slots = sum(document in gold for document in documents)
        gold_shares.append(gold_slots / len(documents) if documents else 0.0)
        for document in documents:
            if document in seen_documents:
                repeated_slots += 1
            elif document in gold:
                last_gold_round = number
            seen_documents.add(document)
    return SearchFindings(
        gold_shares=tuple(gold_shares),
        rounds_without_gold=sum(gold.isdisjoint(documents) for documents in rounds),
        slots=sum(len(documents) for documents in rounds),
        repeated_slots=repeated_slots,
        rounds_after_last_gold=len(rounds) - last_gold_round,
    )


def unreached_aspects(rounds: Sequence[Sequence[str]], aspects: Mapping[str, AbstractSet[str]]) -> list[str]:
    """Return the ids of the aspects of which no search returned a document, in the order of `aspects`.

    `aspects` maps the id of each aspect to the ids of the documents that support it.
    """
    returned_documents = {document for documents in rounds for document in documents}
    return [aspect for aspect, documents in aspects.items() if returned_documents.isdisjoint(documents)]


def agent_ndcg(rounds: Sequence[Sequence[str]], aspects: QueryAspects) -> AgentNdcg:
    """Return alpha-nDCG@5R of the joined lists of R rounds, with and without repeated documents."""
    ranking = [document for documents in rounds for document in documents]
    # The depth grows with the rounds, so that an agent that searched more is measured over its whole list.
    depth = DOCUMENTS_PER_ROUND * max(1, len(rounds))
    unique_ranking = list(dict.fromkeys(ranking))
    return AgentNdcg(alpha_ndcg(ranking, aspects, depth), alpha_ndcg(unique_ranking, aspects, depth))
