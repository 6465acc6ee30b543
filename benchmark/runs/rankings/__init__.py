"""Rankings of runs in the database: stored in trec_eval's order, loaded as arrays."""

from benchmark.runs.rankings.loading import as_run, load, scores_of, write_trec
from benchmark.runs.rankings.storing import RankedQuery, excluded, queries, store, unranked

__all__ = [
    "RankedQuery",
    "as_run",
    "excluded",
    "load",
    "queries",
    "scores_of",
    "store",
    "unranked",
    "write_trec",
]
