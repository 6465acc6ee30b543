"""Choice of pairs: panel agreement, negatives a positive, documents a query. Pure."""

from collections import Counter
from collections.abc import Iterable

from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

SETTLED = ("people", "adjudicator")
Left = Counter[str]  # How many pairs were left out, by the reason in words.


def filter_queries(
    queries: Iterable[SetQuery],
    left: Left,
    *,
    agreement: float | None = None,
    negatives: int | None = None,
    documents: int | None = None,
    seed: int = 0,
) -> list[SetQuery]:
    """Return the queries with the rows that stay; those without a row are gone."""

    def choose(query: SetQuery) -> list[SetRow]:
        # Missing scores of judged pairs are refused before this.
        rows = [row for row in query.rows if row.teacher is not None]
        assumed = sum(row.teacher is None and row.assumed for row in query.rows)
        left[gettext_noop("assumed negatives without a target score")] += assumed
        few = len(query.rows) - len(rows) - assumed
        left[gettext_noop("fewer votes than the panel has members")] += few
        if agreement is not None:
            rows = _keep_agreed(rows, agreement, left)
        if negatives is None and documents is None:
            return rows
        # Those of the run first, by rank; the others as the seed says.
        rows.sort(key=lambda row: (row.rank == 0, row.rank, order_key(seed, query.id, row.doc_id)))
        if negatives is not None:
            rows = _limit_negatives(rows, negatives, left)
        if documents is not None:
            rows = _limit_documents(rows, documents, left)
        return sorted(rows, key=lambda row: row.doc_id.encode())

    return keep_rows(queries, choose)


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


def _limit_negatives(rows: list[SetRow], most: int, left: Left) -> list[SetRow]:
    """Keep all positives, and the first so many negatives for each."""
    positives = [row for row in rows if row.relevant]
    kept = positives + [row for row in rows if not row.relevant][: most * len(positives)]
    left[gettext_noop("more negatives than requested")] += len(rows) - len(kept)
    return kept


def _limit_documents(rows: list[SetRow], wanted: int, left: Left) -> list[SetRow]:
    """Keep so many: positives first, but one place for a negative where there is one; then negatives."""
    if len(rows) < wanted:
        left[gettext_noop("queries with fewer documents")] += len(rows)
        return []
    negatives = [row for row in rows if not row.relevant]
    positives = [row for row in rows if row.relevant][: wanted - 1 if negatives and wanted > 1 else wanted]
    kept = positives + negatives[: wanted - len(positives)]
    left[gettext_noop("more documents than requested")] += len(rows) - len(kept)
    return kept
