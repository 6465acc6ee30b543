"""Measures of a scale's scores: crowding at ends, ties, ranking quality (ERank 3.2, B). Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from judges.records import Turn

LOW, HIGH = 0.00001, 0.99999  # A score below or above says that the model was certain (ERank figure 6).
BINS = 10
DEPTH = 10


@dataclass(frozen=True, slots=True)
class ScoredScale:
    """A scored document of a query. `score`: 0 to 1. `relevance`: its reference grade, None where there is none."""

    query: int
    score: float
    relevance: int | None


def score_of(vote: Turn, grades: int) -> float:
    """Return the score that ranks, from 0 to 1: yes over yes and no, or s x P(s) over the highest grade (ERank 3.2).

    Without probabilities it is the verdict, or s over the highest grade.
    """
    shares = vote.probabilities or {}
    if grades == 1:
        both = shares.get("yes", 0.0) + shares.get("no", 0.0)
        return shares.get("yes", 0.0) / both if both else float(vote.verdict)
    score = vote.score or 0
    return score * shares.get(str(score), 1.0) / grades


def measure_scale(scored: Sequence[ScoredScale]) -> dict[str, Any]:
    """Compute all measures of one judge's scores, by their names in JSON. Shares are None where nothing is counted."""
    count = len(scored)
    bins = Counter(min(int(one.score * BINS), BINS - 1) for one in scored)
    queries: dict[int, list[ScoredScale]] = {}
    for one in scored:
        queries.setdefault(one.query, []).append(one)
    found = [value for docs in queries.values() if (value := ndcg(docs)) is not None]
    couples = sum(comb(len(docs), 2) for docs in queries.values())
    tied = Counter((one.query, one.score) for one in scored)
    return {
        "pairs": count,
        "histogram": [bins[place] for place in range(BINS)],  # The last bin is closed.
        "certain_no": sum(one.score < LOW for one in scored) / count if count else None,
        "certain_yes": sum(one.score > HIGH for one in scored) / count if count else None,
        "ties": sum(comb(n, 2) for n in tied.values()) / couples if couples else None,
        "ndcg": sum(found) / len(found) if found else None,
        "queries": len(found),  # With at least two documents of which one is relevant: nDCG is their mean.
    }


def ndcg(documents: Sequence[ScoredScale]) -> float | None:
    """Return a query's nDCG@10 over judged documents; None without two and a relevant one."""
    from sklearn.metrics import ndcg_score

    # scikit-learn takes the grades as linear gains, and lets tied documents share theirs.
    known = [one for one in documents if one.relevance is not None]
    if len(known) < 2 or not any(one.relevance for one in known):
        return None
    return float(ndcg_score([[one.relevance for one in known]], [[one.score for one in known]], k=DEPTH))
