"""The pairs on which two assessors differ, query by query: what each said, with comment and seconds, and which way."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.db.models.functions import Left

from annotation.agreement.grade_matrix import APART, GradeMatrix, KnownAssessors, fetch_columns, mask_of_cell
from annotation.agreement.resampling import MISSING
from corpus.models import Assessor, Collection, Judgment, Pair
from judges.models import Attempt

PAGE = 50
OWNERS = """
SELECT array_agg(id) AS pair, array_agg(query_id) AS query FROM corpus_pair WHERE id = ANY(%(pairs)s)
"""
MOST = 10  # Queries that are named above the list.


def list_disagreements(
    collection: Collection, found: GradeMatrix, kind: str, bound: int | None, number: str | None
) -> dict[str, Any]:
    """Return a page of the pairs in a cell by query, and where they gather. `found`: both assessors' given grades."""
    both = mask_of_cell(found, "both", bound)
    pairs = found.pairs[both]
    inside = mask_of_cell(found, kind, bound)[both]
    owners = fetch_columns(OWNERS, pairs=pairs.tolist())
    # `pairs` is in the order of ids, too, so that the places of both are the same.
    queries = np.sort(owners, order="pair")["query"]
    order = np.lexsort((pairs[inside], queries[inside]))
    listed, listed_queries = pairs[inside][order], queries[inside][order]
    page = Paginator(range(len(listed)), PAGE).get_page(number)
    shown = [int(listed[at]) for at in page]
    # A dict of a million pairs takes a while, and an empty page needs none.
    grades = dict(zip(found.pairs.tolist(), found.grades.T.tolist(), strict=True)) if shown else {}
    said = [_read_remarks(one, shown) for one in found.assessors]
    counts = dict(zip(*(part.tolist() for part in np.unique(listed_queries, return_counts=True)), strict=True))
    totals = dict(zip(*(part.tolist() for part in np.unique(queries, return_counts=True)), strict=True))
    rows = {row["pk"]: row for row in _select_texts(shown)}
    for pk, row in rows.items():
        remarks = [one.get(pk, ("", None)) for one in said]
        row["given"] = [
            {"grade": grade, "comment": comment, "seconds": seconds}
            for grade, (comment, seconds) in zip(grades[pk], remarks, strict=True)
        ]
    in_order = [rows[pk] for pk in shown if pk in rows]
    groups = [
        {"query": query, "count": counts[query], "total": totals[query], "rows": list(members)}
        for query, members in groupby(in_order, key=lambda row: row["query_id"])
    ]
    return {
        "page": page,
        "groups": groups,
        "total": len(listed),
        "most": _most_differing(counts, totals, listed_queries),
    }


def _most_differing(counts: dict[int, int], totals: dict[int, int], listed: Any) -> list[dict[str, Any]]:
    """Return the queries with most pairs of the list, each with the page on which it begins."""
    top = sorted(counts, key=lambda query: (-counts[query], query))[:MOST]
    names = dict(Pair.objects.filter(query__in=top).values_list("query_id", Left("query__text", 90)).distinct())
    return [
        {
            "query": query,
            "text": names.get(query, ""),
            "count": counts[query],
            "total": totals[query],
            "page": int(np.searchsorted(listed, query)) // PAGE + 1,
        }
        for query in top
    ]


def _select_texts(pairs: Sequence[int]) -> QuerySet[Pair, Any]:
    return Pair.objects.filter(pk__in=pairs).values(
        "pk",
        "query_id",
        "query__external_id",
        "document__external_id",
        query_text=Left("query__text", 200),
        title=Left("document__title", 120),
        text=Left("document__text", 200),
    )


def _read_remarks(one: KnownAssessors, pairs: Sequence[int]) -> dict[int, tuple[str, float | None]]:
    """Read comment and seconds of a person, the reason of a judge, by pair."""
    if one.kind == Assessor.Kind.JUDGE:
        votes = Attempt.deciding.filter(pair__in=pairs, judge=one.id, role="vote", outcome="labelled")
        # Samples of one judge have votes of their own, and none is told apart here.
        kept = votes.order_by("campaign", "-place").values_list("pair", "reason") if not one.sample else ()
        return {pair: (reason, None) for pair, reason in kept}
    found = Judgment.objects.heads().filter(pair__in=pairs, assessor=one.id, aspect=None, grade__isnull=False)
    found = found.exclude(step=Judgment.Step.ADJUDICATION).exclude(item__reason__in=APART)
    rows = found.values_list("step", "pk", "pair", "comment", "milliseconds")
    # The first answer counts, as in agreement (annotation.agreement.grade_matrix).
    ordered = sorted(rows, key=lambda row: (row[0] == Judgment.Step.FIRST, -row[1]))
    return {pair: (comment, None if ms is None else ms / 1000) for _step, _pk, pair, comment, ms in ordered}


def compare_directions(found: GradeMatrix, bound: int | None, relevant_from: int) -> dict[str, Any]:
    """Count who gave the higher grade, and how often each says relevant, over common pairs."""
    both = (found.grades != MISSING).all(axis=0)
    yes = [int((row[both] >= (bound or relevant_from)).sum()) for row in found.grades]
    n = int(both.sum())
    low = int(yes[1] < yes[0])
    return {
        "n": n,
        "relevant": yes,
        "shares": [one / n if n else None for one in yes],
        "higher": [int(mask_of_cell(found, kind, bound).sum()) for kind in ("above", "below")],
        "seldom": found.assessors[low].name,
        "often": found.assessors[1 - low].name,
        "ratio": yes[low] / yes[1 - low] if yes[0] != yes[1] else None,
    }
