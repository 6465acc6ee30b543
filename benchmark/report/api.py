"""API operations on the leaderboard, and on reports over two versions of the qrels."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema

from actions.services import Actor
from api.authentication import MANAGE, may, scope_of
from api.operations import COLLECTION_PATH, operation
from api.paging import Cursor, Limit, Page, page_of
from benchmark.measures.arrays import RANKING
from benchmark.models import Report
from benchmark.report import leaderboard as boards
from benchmark.report import services
from benchmark.report.options import Weights
from benchmark.report.weighting import COUNTS, counts_mark
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import numbered_or_404

router = Router(tags=["reports"])


class ReportOut(Schema):
    """A benchmark report; `result` is empty until it is ready."""

    number: int
    state: str
    done: int
    total: int
    error: str
    result: dict[str, Any]
    created_at: datetime


class DifferenceOut(Schema):
    """A system's mean minus that of the best, with its interval and test, both corrected by Holm."""

    run: int
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    is_significant: bool


class SystemOut(Schema):
    """A run on the leaderboard; systems with a letter in common do not differ significantly."""

    run: int
    name: str
    place: int
    letters: str
    value: float | None
    low: float | None
    high: float | None
    difference: DifferenceOut | None = Field(description="From the best; null: it is the best.")
    values: dict[str, float | None]
    missing: int = Field(description="Queries for which it has nothing: they count 0.")
    outdated: int | None = Field(
        description="Documents unjudged because their text has changed since; null: not counted yet."
    )
    seconds: float | None
    usd: float | None


class LeaderboardOut(Schema):
    """All ready runs measured by the newest qrels."""

    state: str = Field(description="missing: never requested; else that of the report on the runs of now.")
    is_current: bool = Field(description="The systems are those of the report on the runs and qrels of now.")
    report: int | None
    measure: str
    weights: Weights = Field(description="Each query alike, or weighted by the query log's counts.")
    k: int | None
    queries: int
    systems: list[SystemOut]


@router.get(f"{COLLECTION_PATH}/leaderboard", auth=may("results"), response=LeaderboardOut)
def read_leaderboard(request: HttpRequest, name: str, measure: str = "ndcg", weights: Weights = "plain") -> Any:
    """Read the leaderboard by a measure; nothing is computed. `weights`: counts for means weighted by a query log."""
    if measure not in RANKING:
        raise BadInput(
            _("Unknown measure %(name)s; choose one of %(known)s")
            % {"name": repr(measure), "known": ", ".join(RANKING)}
        )
    return _show_leaderboard(scope_of(request).collection, measure, weights)


@router.post(f"{COLLECTION_PATH}/leaderboard", auth=may("admin", MANAGE), response=LeaderboardOut)
def compute_leaderboard(request: HttpRequest, name: str, weights: Weights = "plain") -> Any:
    """Compute today's leaderboard: a small one at once, a large one by a worker."""
    # No idempotency key is needed: a repeated request gets the same report.
    scope = scope_of(request)
    # Outside the service's transaction, because the lease needs a committed row.
    by = COUNTS if weights == COUNTS else ""
    boards.make_small(services.ask_leaderboard(Actor.of(scope), scope.collection, weights=by))
    return _show_leaderboard(scope.collection, "ndcg", weights)


def _show_leaderboard(collection: Collection, measure: str, weights: Weights) -> dict[str, Any]:
    if weights == COUNTS:
        # Raises BadOption where no query has a count: a program must not take plain means for weighted ones.
        counts_mark(collection)
    state = boards.load_leaderboard(collection, weights)
    board = boards.build_leaderboard(state.stored, measure, "") if state.stored else None
    stored = state.stored.report if state.stored else None
    return {
        "state": state.current.state if state.current else "missing",
        "is_current": bool(stored and state.current and stored.pk == state.current.pk),
        "report": stored.number if stored else None,
        "measure": measure,
        "weights": weights,
        "k": board["k"] if board else None,
        "queries": board["queries"] if board else 0,
        "systems": [{**row, **row["cost"], "difference": row["best"]} for row in board["rows"]] if board else [],
    }


def _show_report(row: Report) -> dict[str, Any]:
    fields = ("state", "done", "total", "error", "created_at")
    return {"number": row.number, "result": row.result or {}, **{name: getattr(row, name) for name in fields}}


@router.get(f"{COLLECTION_PATH}/reports", auth=may("results"), response=Page[ReportOut])
def list_reports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the benchmark reports."""
    return page_of(Report.objects.filter(collection=scope_of(request).collection), after, limit, _show_report)


operation(router, services.ask_report, "POST", "/reports", response=ReportOut, show=_show_report)


@router.get(f"{COLLECTION_PATH}/reports/{{number}}", auth=may("results"), response=ReportOut)
def read_report(request: HttpRequest, name: str, number: int) -> Any:
    """Read a benchmark report with its measures."""
    return _show_report(numbered_or_404(Report.objects, scope_of(request).collection, number, _("Report not found.")))
