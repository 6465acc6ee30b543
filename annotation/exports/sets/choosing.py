"""Choice of pairs: agreement of the panel, negatives for each positive, fixed documents a query. Pure."""

from collections import Counter
from collections.abc import Iterable

from annotation.exports.sets.options import SetOptions
from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

SETTLED = ("people", "adjudicator")
Left = Counter[str]  # How many pairs were left out, by the reason in words.


def filter_queries(queries: Iterable[SetQuery], asked: SetOptions, left: Left) -> list[SetQuery]:
    """Return the queries with the rows that stay; those without a row are gone."""

    def choose(query: SetQuery) -> list[SetRow]:
        rows = _keep_scored(query.rows, asked, left)
        if asked.agreement is not None:
            rows = _keep_agreed(rows, asked.agreement, left)
        if asked.negatives is not None:
            rows = _few_negatives(query, rows, asked, left)
        if asked.documents is not None:
            rows = _limit_documents(query, rows, asked, left)
        return rows

    return keep_rows(queries, choose)


def _keep_scored(rows: list[SetRow], asked: SetOptions, left: Left) -> list[SetRow]:
    """Keep rows with a target score. Missing scores of judged pairs are refused before this."""
    kept = [row for row in rows if row.teacher is not None]
    missing = [row for row in rows if row.teacher is None]
    if missing:
        assumed = sum(row.assumed for row in missing)
        left[gettext_noop("assumed negatives without a target score")] += assumed
        left[gettext_noop("fewer votes than the panel has members")] += len(missing) - assumed
    return kept


def _keep_agreed(rows: list[SetRow], least: float, left: Left) -> list[SetRow]:
    """Keep machines' labels with this share of the votes behind them, and all labels of people."""
    kept = []
    for row in rows:
        equal = row.yes if row.relevant else row.votes - row.yes
        # Where nobody voted, no share is large enough.
        if row.assumed or row.origin in SETTLED or (row.votes and equal / row.votes >= least):
            kept.append(row)
    left[gettext_noop("too little agreement")] += len(rows) - len(kept)
    return kept


def _few_negatives(query: SetQuery, rows: list[SetRow], asked: SetOptions, left: Left) -> list[SetRow]:
    """Keep all positives, and the first negatives of the seeded order; those of the run's ranks before others."""
    positives = [row for row in rows if row.relevant]
    negatives = _order_rows([row for row in rows if not row.relevant], query, asked.seed)
    most = (asked.negatives or 0) * len(positives)
    left[gettext_noop("more negatives than requested")] += max(0, len(negatives) - most)
    return _sort_by_document(positives + negatives[:most])


def _limit_documents(query: SetQuery, rows: list[SetRow], asked: SetOptions, left: Left) -> list[SetRow]:
    """Keep so many documents: positives first, but one place for a negative where there is one; then hard negatives."""
    wanted = asked.documents or 0
    if len(rows) < wanted:
        left[gettext_noop("queries with fewer documents")] += len(rows)
        return []
    negatives = _order_rows([row for row in rows if not row.relevant], query, asked.seed)
    positives = _order_rows([row for row in rows if row.relevant], query, asked.seed)
    room = wanted - 1 if negatives and wanted > 1 else wanted
    positives = positives[:room]
    kept = positives + negatives[: wanted - len(positives)]
    left[gettext_noop("more documents than requested")] += len(rows) - len(kept)
    return _sort_by_document(kept)


def _order_rows(rows: list[SetRow], query: SetQuery, seed: int) -> list[SetRow]:
    """Sort the rows: those of the run first, by rank; the others as the seed says."""
    return sorted(rows, key=lambda row: (row.rank == 0, row.rank, order_key(seed, query.id, row.doc_id)))


def _sort_by_document(rows: list[SetRow]) -> list[SetRow]:
    return sorted(rows, key=lambda row: row.doc_id.encode())
