"""Choice of pairs: panel agreement, negatives per positive, documents per query. Pure."""

from collections import Counter
from collections.abc import Iterable

from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

SETTLED = ("people", "adjudicator")
LeftOutCounts = Counter[str]  # Number of pairs that were left out, by reason in words.


def filter_queries(
    queries: Iterable[SetQuery],
    left_out: LeftOutCounts,
    *,
    agreement: float | None = None,
    negatives: int | None = None,
    documents: int | None = None,
    seed: int = 0,
) -> list[SetQuery]:
    """Return the queries with the rows that remain, without queries that have none."""

    def choose(query: SetQuery) -> list[SetRow]:
        # Only a target score by votes may be missing: missing reranker scores were refused before.
        rows = [row for row in query.rows if row.target_score is not None]
        assumed = sum(row.target_score is None and row.assumed for row in query.rows)
        left_out[gettext_noop("assumed negatives without a target score")] += assumed
        too_few_votes = len(query.rows) - len(rows) - assumed
        left_out[gettext_noop("fewer votes than the panel has members")] += too_few_votes
        if agreement is not None:
            # Labels of people, and judges' labels that at least this share of votes supports.
            agreed_rows = []
            for row in rows:
                equal = row.yes if row.relevant else row.votes - row.yes
                if row.assumed or row.origin in SETTLED or (row.votes and equal / row.votes >= agreement):
                    agreed_rows.append(row)
            left_out[gettext_noop("too little agreement")] += len(rows) - len(agreed_rows)
            rows = agreed_rows
        if negatives is None and documents is None:
            return rows
        # Documents of the run come first, by rank; the others in seeded order.
        rows.sort(key=lambda row: (row.rank == 0, row.rank, order_key(seed, query.id, row.doc_id)))
        if negatives is not None:
            # All positives, and the first negatives for each.
            positives = [row for row in rows if row.relevant]
            limited_rows = positives + [row for row in rows if not row.relevant][: negatives * len(positives)]
            left_out[gettext_noop("more negatives than requested")] += len(rows) - len(limited_rows)
            rows = limited_rows
        if documents is not None:
            rows = _limit_documents(rows, documents, left_out)
        return sorted(rows, key=lambda row: row.doc_id.encode())

    return keep_rows(queries, choose)


def _limit_documents(rows: list[SetRow], number: int, left_out: LeftOutCounts) -> list[SetRow]:
    """Return exactly `number` rows, positives first but at least one negative if there is one; none if too few."""
    if len(rows) < number:
        left_out[gettext_noop("queries with fewer documents")] += len(rows)
        return []
    negatives = [row for row in rows if not row.relevant]
    positives = [row for row in rows if row.relevant][: number - 1 if negatives and number > 1 else number]
    limited_rows = positives + negatives[: number - len(positives)]
    left_out[gettext_noop("more documents than requested")] += len(rows) - len(limited_rows)
    return limited_rows
