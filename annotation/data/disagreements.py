"""The pairs on which two assessors differ, by query: both grades, comments and seconds, and who graded higher."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from django.core.paginator import Paginator
from django.db.models.functions import Left

from annotation.agreement.grade_matrix import APART, GradeMatrix, KnownAssessor, fetch_columns, mask_of_cell
from annotation.agreement.resampling import MISSING
from corpus.models import Assessor, Collection, Judgment, Pair
from judges.models import Attempt

PAGE = 50
OWNERS = """
SELECT array_agg(id) AS pair, array_agg(query_id) AS query FROM corpus_pair WHERE id = ANY(%(pairs)s)
"""
MOST = 10  # Queries named above the list.


def list_disagreements(
    collection: Collection, matrix: GradeMatrix, kind: str, bound: int | None, number: str | None
) -> dict[str, Any]:
    """Return a page of a cell's pairs by query, and the queries with most of them. `matrix`: both assessors' grades."""
    common = mask_of_cell(matrix, "both", bound)
    pairs = matrix.pairs[common]
    inside = mask_of_cell(matrix, kind, bound)[common]
    owners = fetch_columns(OWNERS, pairs=pairs.tolist())
    # `pairs` is in the order of ids, too, so the rows of the two arrays match.
    queries = np.sort(owners, order="pair")["query"]
    order = np.lexsort((pairs[inside], queries[inside]))
    listed_pairs, listed_queries = pairs[inside][order], queries[inside][order]
    page = Paginator(range(len(listed_pairs)), PAGE).get_page(number)
    shown_pairs = [int(listed_pairs[at]) for at in page]
    # A dict of a million pairs takes a while, and an empty page needs none.
    grades = dict(zip(matrix.pairs.tolist(), matrix.grades.T.tolist(), strict=True)) if shown_pairs else {}
    remarks_by_assessor = [_read_remarks(assessor, shown_pairs) for assessor in matrix.assessors]
    counts = dict(zip(*(part.tolist() for part in np.unique(listed_queries, return_counts=True)), strict=True))
    totals = dict(zip(*(part.tolist() for part in np.unique(queries, return_counts=True)), strict=True))
    texts = Pair.objects.filter(pk__in=shown_pairs).values(
        "pk",
        "query_id",
        "query__external_id",
        "document__external_id",
        query_text=Left("query__text", 200),
        title=Left("document__title", 120),
        text=Left("document__text", 200),
    )
    rows: dict[int, Any] = {row["pk"]: row for row in texts}
    for pk, row in rows.items():
        remarks = [by_pair.get(pk, ("", None)) for by_pair in remarks_by_assessor]
        row["answers"] = [
            {"grade": grade, "comment": comment, "seconds": seconds}
            for grade, (comment, seconds) in zip(grades[pk], remarks, strict=True)
        ]
    in_order = [rows[pk] for pk in shown_pairs if pk in rows]
    groups = [
        {"query": query, "count": counts[query], "total": totals[query], "rows": list(members)}
        for query, members in groupby(in_order, key=lambda row: row["query_id"])
    ]
    # The queries with the most listed pairs, each with the page on which it begins.
    top = sorted(counts, key=lambda query: (-counts[query], query))[:MOST]
    names = dict(Pair.objects.filter(query__in=top).values_list("query_id", Left("query__text", 90)).distinct())
    most = [
        {
            "query": query,
            "text": names.get(query, ""),
            "count": counts[query],
            "total": totals[query],
            "page": int(np.searchsorted(listed_queries, query)) // PAGE + 1,
        }
        for query in top
    ]
    return {
        "page": page,
        "groups": groups,
        "total": len(listed_pairs),
        "most": most,
    }


def _read_remarks(assessor: KnownAssessor, pairs: Sequence[int]) -> dict[int, tuple[str, float | None]]:
    """Return, by pair, a person's comment and seconds, or a judge's reason."""
    if assessor.kind == Assessor.Kind.JUDGE:
        votes = Attempt.deciding.filter(pair__in=pairs, judge=assessor.id, role="vote", outcome="labelled")
        # Samples of one judge vote separately, and votes do not say of which sample they are.
        reasons = votes.order_by("campaign", "-place").values_list("pair", "reason") if not assessor.sample else ()
        return {pair: (reason, None) for pair, reason in reasons}
    judgments = Judgment.objects.heads().filter(pair__in=pairs, assessor=assessor.id, aspect=None, grade__isnull=False)
    judgments = judgments.exclude(step=Judgment.Step.ADJUDICATION).exclude(item__reason__in=APART)
    rows = judgments.values_list("step", "pk", "pair", "comment", "milliseconds")
    # The first answer counts, as in agreement (annotation.agreement.grade_matrix).
    ordered = sorted(rows, key=lambda row: (row[0] == Judgment.Step.FIRST, -row[1]))
    return {pair: (comment, None if ms is None else ms / 1000) for _step, _pk, pair, comment, ms in ordered}


def compare_directions(matrix: GradeMatrix, bound: int | None, relevant_from: int) -> dict[str, Any]:
    """Count, over common pairs, who gave the higher grade and how often each says relevant."""
    common = (matrix.grades != MISSING).all(axis=0)
    relevant = [int((row[common] >= (bound or relevant_from)).sum()) for row in matrix.grades]
    n = int(common.sum())
    low = int(relevant[1] < relevant[0])
    return {
        "n": n,
        "relevant": relevant,
        "shares": [count / n if n else None for count in relevant],
        "higher": [int(mask_of_cell(matrix, kind, bound).sum()) for kind in ("above", "below")],
        "seldom": matrix.assessors[low].name,
        "often": matrix.assessors[1 - low].name,
        "ratio": relevant[low] / relevant[1 - low] if relevant[0] != relevant[1] else None,
    }
