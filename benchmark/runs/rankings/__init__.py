"""Rankings of runs in the database: stored in trec_eval's order, loaded as arrays."""

from benchmark.runs.rankings.loading import as_run, load, scores_of, write_trec
from benchmark.runs.rankings.storing import RankedQuery, current_queries, excluded_documents, store, unranked_queries

__all__ = [
    "RankedQuery",
    "as_run",
    "current_queries",
    "excluded_documents",
    "load",
    "scores_of",
    "store",
    "unranked_queries",
    "write_trec",
]
