"""Measures of one trace's searches: gold by round, repeats, aspects never reached, rounds without new gold. Pure.

Gold is a document that supports one of the query's aspects. A slot is a place of a round's list; a
document that comes again takes its place and adds nothing (BRIGHT-Pro 6.3 and figure 9).
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
    repeated: int  # Slots with a document that stood there before.
    after_last_gold: int  # Rounds after the last one with new gold; all, where none had any.


def read_searches(rounds: Sequence[Sequence[str]], gold: AbstractSet[str]) -> SearchFindings:
    """Measure the rounds of one trace; `rounds`: the documents that each search returned."""
    shares, seen, last, repeated = [], set[str](), 0, 0
    for number, returned in enumerate(rounds, 1):
        # Repeats of gold count here: this is the share of the slots that hold gold. Only new gold moves `last`.
        shares.append(sum(one in gold for one in returned) / len(returned) if returned else 0.0)
        for one in returned:
            if one in seen:
                repeated += 1
            elif one in gold:
                last = number
            seen.add(one)
    without = sum(not set(returned) & gold for returned in rounds)
    return SearchFindings(tuple(shares), without, sum(map(len, rounds)), repeated, len(rounds) - last)


def unreached_aspects(rounds: Sequence[Sequence[str]], aspects: Mapping[str, AbstractSet[str]]) -> list[str]:
    """Ids of the aspects none of whose documents was returned, in their order."""
    found = {one for returned in rounds for one in returned}
    return [name for name, documents in aspects.items() if not documents & found]


def agent_ndcg(rounds: Sequence[Sequence[str]], sought: QueryAspects) -> tuple[float, float]:
    """Return alpha-nDCG@5R of the rounds' joined lists: with repeated documents in their places, and without."""
    # The cut grows with the rounds, so that an agent that searched more is measured over all of its places.
    listed = [one for returned in rounds for one in returned]
    cut = TOP * max(1, len(rounds))
    return alpha_ndcg(listed, sought, cut), alpha_ndcg(list(dict.fromkeys(listed)), sought, cut)
