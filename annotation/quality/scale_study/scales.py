"""Measures of the scores on a scale: crowding at the ends, ties, ranking quality (ERank 3.2, B). Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from judges.records import Turn

LOW, HIGH = 0.00001, 0.99999  # Below and above these scores the model is certain (ERank figure 6).
BINS = 10
DEPTH = 10


@dataclass(frozen=True, slots=True)
class ScoredScale:
    """A scored document of a query. `score`: 0 to 1; `relevance`: its reference grade, or None."""

    query: int
    score: float
    relevance: int | None


def score_of(vote: Turn, grades: int) -> float:
    """Return the score of a vote, from 0 to 1 (ERank 3.2).

    P(yes) / (P(yes) + P(no)), or the grade s times P(s) over the highest grade. Without probabilities it is
    the verdict, or s over the highest grade.
    """
    probabilities = vote.probabilities or {}
    if grades == 1:
        total = probabilities.get("yes", 0.0) + probabilities.get("no", 0.0)
        return probabilities.get("yes", 0.0) / total if total else float(vote.verdict)
    score = vote.score or 0
    return score * probabilities.get(str(score), 1.0) / grades


def measure_scale(scored: Sequence[ScoredScale]) -> dict[str, Any]:
    """Compute all measures of one judge's scores, by their names in JSON. Shares are None without documents."""
    count = len(scored)
    bins = Counter(min(int(document.score * BINS), BINS - 1) for document in scored)
    queries: dict[int, list[ScoredScale]] = {}
    for document in scored:
        queries.setdefault(document.query, []).append(document)
    ndcgs = [value for docs in queries.values() if (value := ndcg(docs)) is not None]
    couples = sum(comb(len(docs), 2) for docs in queries.values())
    tied = Counter((document.query, document.score) for document in scored)
    return {
        "pairs": count,
        "histogram": [bins[index] for index in range(BINS)],  # The last bin is closed.
        "certain_no": sum(document.score < LOW for document in scored) / count if count else None,
        "certain_yes": sum(document.score > HIGH for document in scored) / count if count else None,
        "ties": sum(comb(n, 2) for n in tied.values()) / couples if couples else None,
        "ndcg": sum(ndcgs) / len(ndcgs) if ndcgs else None,
        "queries": len(ndcgs),  # Queries with at least two graded documents, one of them relevant.
    }


def ndcg(documents: Sequence[ScoredScale]) -> float | None:
    """Return a query's nDCG@10 over its graded documents; None unless there are two and one is relevant."""
    from sklearn.metrics import ndcg_score

    # scikit-learn uses linear gains, and averages over the orders of tied documents.
    graded_documents = [document for document in documents if document.relevance is not None]
    if len(graded_documents) < 2 or not any(document.relevance for document in graded_documents):
        return None
    return float(
        ndcg_score(
            [[document.relevance for document in graded_documents]],
            [[document.score for document in graded_documents]],
            k=DEPTH,
        )
    )
