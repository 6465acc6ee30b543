"""The limits of a set: agreement of the panel, negatives for each positive, documents for each query.

The module computes and reads no database.
"""

from collections import Counter
from collections.abc import Iterable

from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

ORIGINS_OF_PEOPLE = ("people", "adjudicator")  # Origins of labels that people have settled.
LeftOutCounts = Counter[str]  # Number of rows that were left out, by reason in words.


def filter_queries(
    queries: Iterable[SetQuery],
    left_out: LeftOutCounts,
    *,
    agreement: float | None = None,
    negatives: int | None = None,
    documents: int | None = None,
    seed: int = 0,
) -> list[SetQuery]:
    """Return the queries with the rows that remain within the limits, without queries that have no row left.

    1. Leave out rows without a target score.
    2. `agreement` is the share of votes that must support the label of a judge; None for no limit.
    3. `negatives` is the largest number of negatives for each positive of a query; None for no limit.
    4. `documents` is the exact number of documents of a query; None for any number.

    `seed` determines which documents are taken first. `left_out` counts the rows that were left out.
    """

    def choose_rows(query: SetQuery) -> list[SetRow]:
        rows = [row for row in query.rows if row.target_score is not None]
        # Of the judged rows, only those scored by votes may lack a score at this point.
        assumed_count = sum(row.target_score is None and row.assumed for row in query.rows)
        left_out[gettext_noop("assumed negatives without a target score")] += assumed_count
        judged_count = len(query.rows) - len(rows) - assumed_count
        left_out[gettext_noop("fewer votes than the panel has members")] += judged_count
        if agreement is not None:
            rows = _leave_out_disputed(rows, agreement, left_out)
        if negatives is None and documents is None:
            return rows
        # Documents of the run come first, by rank, and the others in seeded order.
        rows.sort(key=lambda row: (row.rank == 0, row.rank, order_key(seed, query.id, row.doc_id)))
        if negatives is not None:
            positives = [row for row in rows if row.relevant]
            limited_rows = positives + [row for row in rows if not row.relevant][: negatives * len(positives)]
            left_out[gettext_noop("more negatives than requested")] += len(rows) - len(limited_rows)
            rows = limited_rows
        if documents is not None:
            rows = _limit_documents(rows, documents, left_out)
        return sorted(rows, key=lambda row: row.doc_id.encode())

    return keep_rows(queries, choose_rows)


def _leave_out_disputed(rows: list[SetRow], agreement: float, left_out: LeftOutCounts) -> list[SetRow]:
    """Return the rows whose label comes from people or is assumed, or is supported by enough votes."""
    agreed_rows = []
    for row in rows:
        supporting_votes = row.yes if row.relevant else row.votes - row.yes
        has_support = row.votes > 0 and supporting_votes / row.votes >= agreement
        if row.assumed or row.origin in ORIGINS_OF_PEOPLE or has_support:
            agreed_rows.append(row)
    left_out[gettext_noop("too little agreement")] += len(rows) - len(agreed_rows)
    return agreed_rows


def _limit_documents(rows: list[SetRow], documents: int, left_out: LeftOutCounts) -> list[SetRow]:
    """Return exactly `documents` rows, or none if there are fewer.

    Positives come first, but if there are negatives, one of them is included.
    """
    if len(rows) < documents:
        left_out[gettext_noop("queries with fewer documents")] += len(rows)
        return []
    negatives = [row for row in rows if not row.relevant]
    max_positives = documents - 1 if negatives and documents > 1 else documents
    positives = [row for row in rows if row.relevant][:max_positives]
    limited_rows = positives + negatives[: documents - len(positives)]
    left_out[gettext_noop("more documents than requested")] += len(rows) - len(limited_rows)
    return limited_rows
