"""p-MRR: how a ranking follows a changed instruction (FollowIR). Pure.

Each document that the changed instruction made irrelevant has a rank in the run under the original
instruction (r) and one in the run under the changed one (r'). Going down is right: 1 - r/r'. Going
up is wrong: r'/r - 1. So 1 is perfect, 0 is a system that ignores instructions, and a system
below 0 does the opposite of what it was told.
"""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from benchmark.measures.rankings import Qrels, Run, rank_documents
from corpus.errors import BadInput

# query -> documents that the changed instruction made irrelevant.
IrrelevantDocuments = Mapping[str, Set[str]]


def became_irrelevant(original: Qrels, changed: Qrels, relevant_from: int = 1) -> dict[str, set[str]]:
    """Return by query the documents that were relevant and that the changed qrels judge not relevant."""
    irrelevant = {}
    for query, grades in original.items():
        changed_grades = changed.get(query, {})
        relevant = [document for document, grade in grades.items() if grade >= relevant_from]
        # A document without a grade under the changed instruction is unknown, not irrelevant.
        documents = {document for document in relevant if 0 <= changed_grades.get(document, -1) < relevant_from}
        if documents:
            irrelevant[query] = documents
    return irrelevant


def rank_change_score(rank: int, new_rank: int) -> float:
    """Score how far one document moved, from -1 to 1; ranks begin at 1."""
    # FollowIR's score: relative to the better of both ranks, negative where the document rose.
    return new_rank / rank - 1 if rank >= new_rank else 1 - rank / new_rank


def p_mrr(original: Run, changed: Run, irrelevant: IrrelevantDocuments) -> dict[str, Any]:
    """Return the mean over each query's documents, then over the queries. Raises BadInput when no document changed.

    `missing`: queries that one of the runs lacks; their documents are ranked behind its last.
    """
    queries = {query: documents for query, documents in irrelevant.items() if documents}
    if not queries:
        raise BadInput("No document became irrelevant. Name the documents that the changed instruction excludes.")
    per_query = {}
    for query, documents in queries.items():
        ranks = []
        for run in (original, changed):
            order = {document: rank for rank, document in enumerate(rank_documents(run.get(query, {})), 1)}
            # A missing document is ranked behind the last one.
            ranks.append([order.get(document, len(order) + 1) for document in sorted(documents)])
        per_query[query] = float(np.mean([*map(rank_change_score, *ranks)]))
    return {
        "queries": len(queries),
        "documents": sum(map(len, queries.values())),
        "value": float(np.mean(list(per_query.values()))),
        "per_query": per_query,
        "missing": sorted(query for query in queries if not original.get(query) or not changed.get(query)),
    }
