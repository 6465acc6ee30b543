"""p-MRR: how a ranking follows a changed instruction (FollowIR). Pure.

Each document that the changed instruction made irrelevant has a rank in the run under the original
instruction (r) and one in the run under the changed one (r'). Going down is right: 1 - r/r'. Going
up is wrong: r'/r - 1. So 1 is perfect, 0 is a system that does not look at instructions, and below
0 it does the opposite of what it was told.
"""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from benchmark.measures.rankings import Qrels, Run, rank_documents
from corpus.errors import BadInput

Changed = Mapping[str, Set[str]]  # query -> documents that the changed instruction made irrelevant.


def became_irrelevant(original: Qrels, changed: Qrels, relevant_from: int = 1) -> dict[str, set[str]]:
    """Documents that were relevant and that the changed qrels judge not relevant; without a grade there: unknown."""
    found = {}
    for query, grades in original.items():
        now = changed.get(query, {})
        relevant = [document for document, grade in grades.items() if grade >= relevant_from]
        # A document without a grade under the changed instruction is unknown, not irrelevant.
        gone = {document for document in relevant if 0 <= now.get(document, -1) < relevant_from}
        if gone:
            found[query] = gone
    return found


def rank_change_score(rank: int, new_rank: int) -> float:
    """Score how one document moved, from -1 to 1; ranks are from 1."""
    # FollowIR's score: relative to the better of both ranks, negative where the document rose.
    return new_rank / rank - 1 if rank >= new_rank else 1 - rank / new_rank


def p_mrr(original: Run, changed: Run, irrelevant: Changed) -> dict[str, Any]:
    """Return the mean over each query's documents, then over the queries. Raises BadInput where no document changed.

    `missing`: queries that one of the runs lacks; their documents are ranked behind its last.
    """
    queries = {query: documents for query, documents in irrelevant.items() if documents}
    if not queries:
        raise BadInput("No document became irrelevant: name those that the changed instruction leaves out")
    per_query = {}
    for query, documents in queries.items():
        ranks = []
        for run in (original, changed):
            order = {document: rank for rank, document in enumerate(rank_documents(run.get(query, {})), 1)}
            # A document that is missing stands behind the last.
            ranks.append([order.get(document, len(order) + 1) for document in sorted(documents)])
        per_query[query] = float(np.mean([*map(rank_change_score, *ranks)]))
    return {
        "queries": len(queries),
        "documents": sum(map(len, queries.values())),
        "value": float(np.mean(list(per_query.values()))),
        "per_query": per_query,
        "missing": sorted(query for query in queries if not original.get(query) or not changed.get(query)),
    }
