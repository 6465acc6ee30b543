"""Measures of one trace's searches: gold by round, repeats, aspects never reached, rounds without new gold. Pure.

Gold is a document that supports one of the query's aspects. A slot is a position in a round's list;
a repeated document takes up a slot and adds nothing (BRIGHT-Pro 6.3 and figure 9).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from benchmark.measures.aspects import QueryAspects, alpha_ndcg

TOP = 5  # Documents of a round.


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """Figures of one trace's searches; `gold_share` is by round, in order."""

    gold_share: tuple[float, ...]  # Of the round's slots; 0 where it returned nothing.
    without_gold: int  # Rounds.
    slots: int
    repeated: int  # Slots with a document of an earlier slot.
    after_last_gold: int  # Rounds after the last one with new gold; all if none had any.


def read_searches(rounds: Sequence[Sequence[str]], gold: AbstractSet[str]) -> SearchFindings:
    """Measure the rounds of one trace; `rounds`: the documents that each search returned."""
    shares, seen, last_gold, repeated = [], set[str](), 0, 0
    for number, returned in enumerate(rounds, 1):
        # Repeated gold counts here, in the share of slots with gold; `last_gold` moves only with new gold.
        shares.append(sum(document in gold for document in returned) / len(returned) if returned else 0.0)
        for document in returned:
            if document in seen:
                repeated += 1
            elif document in gold:
                last_gold = number
            seen.add(document)
    without_gold = sum(not set(returned) & gold for returned in rounds)
    return SearchFindings(tuple(shares), without_gold, sum(map(len, rounds)), repeated, len(rounds) - last_gold)


def unreached_aspects(rounds: Sequence[Sequence[str]], aspects: Mapping[str, AbstractSet[str]]) -> list[str]:
    """Return the ids of the aspects none of whose documents was returned, in their order."""
    returned_documents = {document for returned in rounds for document in returned}
    return [name for name, documents in aspects.items() if not documents & returned_documents]


def agent_ndcg(rounds: Sequence[Sequence[str]], sought: QueryAspects) -> tuple[float, float]:
    """Return alpha-nDCG@5R of the rounds' joined lists: with repeated documents in their positions, and without."""
    # The depth grows with the rounds, so that an agent that searched more is measured over its whole list.
    ranking = [document for returned in rounds for document in returned]
    depth = TOP * max(1, len(rounds))
    return alpha_ndcg(ranking, sought, depth), alpha_ndcg(list(dict.fromkeys(ranking)), sought, depth)
