"""Results of the benchmark: the leaderboard, and reports over two versions of the qrels."""

from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import Given
from benchmark.models import Report
from benchmark.qrels import versions
from benchmark.report import leaderboard as boards
from benchmark.report import reports
from benchmark.report.measures import RANKING
from benchmark.systems import chosen
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import numbered_or_404

router = Router(tags=["reports"])
Number = Annotated[int, Field(ge=1, lt=1 << 31)]


class ReportIn(Given):
    """Runs to measure, and the two versions of the qrels to measure them by."""

    runs: list[int] = Field([], max_length=1000, description="Their numbers; none: all that are ready.")
    before: Number | None = Field(None, description="A version of the qrels; null: the first.")
    after: Number | None = Field(None, description="A version of the qrels; null: the newest.")
    k: int | None = Field(None, ge=1, le=1000, description="Null: 10, or what all runs have.")
    aspects_k: int | None = Field(None, ge=1, le=1000, description="Depth of alpha-nDCG and A-Recall; null: k.")


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
    """A system's mean less that of the best, with its interval and test, both corrected by Holm."""

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
    seconds: float | None
    usd: float | None


class LeaderboardOut(Schema):
    """All ready runs by the newest qrels."""

    state: str = Field(description="missing: nobody asked for it; else that of the report on the runs of now.")
    is_current: bool = Field(description="The systems are those of the report on the runs and qrels of now.")
    report: int | None
    measure: str
    k: int | None
    queries: int
    systems: list[SystemOut]


@router.get("/collections/{slug:name}/leaderboard", auth=may("admin"), response=LeaderboardOut)
def read_leaderboard(request: HttpRequest, name: str, measure: str = "ndcg") -> Any:
    """Read the leaderboard by a measure; nothing is computed."""
    if measure not in RANKING:
        raise BadInput(
            _("Unknown measure %(name)s; choose one of %(known)s")
            % {"name": repr(measure), "known": ", ".join(RANKING)}
        )
    return _show_leaderboard(scope_of(request).collection, measure)


@router.post("/collections/{slug:name}/leaderboard", auth=may("admin", MANAGE), response=LeaderboardOut)
def compute_leaderboard(request: HttpRequest, name: str) -> Any:
    """Compute the leaderboard on the runs and qrels of now: a small one at once, a large one by a worker."""
    # It takes no key: asked again, it is the same report, and the lease of its work needs rows that are committed.
    scope = scope_of(request)
    with transaction.atomic():
        found = boards.request_leaderboard(scope.collection, scope.user.username)
        number = found.before.number
        record_act(scope, "report.asked", report=found.number, before=number, after=number, k=found.options["k"])
    # Outside of the transaction: the lease of its work needs rows that are committed.
    boards.make_small(found)
    return _show_leaderboard(scope.collection, "ndcg")


def _show_leaderboard(collection: Collection, measure: str) -> dict[str, Any]:
    state = boards.load_leaderboard(collection)
    board = boards.build_leaderboard(state.stored, measure, "") if state.stored else None
    stored = state.stored.report if state.stored else None
    return {
        "state": state.current.state if state.current else "missing",
        "is_current": bool(stored and state.current and stored.pk == state.current.pk),
        "report": stored.number if stored else None,
        "measure": measure,
        "k": board["k"] if board else None,
        "queries": board["queries"] if board else 0,
        "systems": [_show_system(row) for row in board["rows"]] if board else [],
    }


def _show_system(row: dict[str, Any]) -> dict[str, Any]:
    shown = ("run", "name", "place", "letters", "value", "low", "high", "values", "missing")
    costs = {"seconds": row["cost"]["seconds"], "usd": row["cost"]["usd"]}
    return {**{key: row[key] for key in shown}, "difference": row["best"], **costs}


@router.get("/collections/{slug:name}/reports", auth=may("admin"), response=Page[ReportOut])
def list_reports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the benchmark reports."""
    return page_of(Report.objects.filter(collection=scope_of(request).collection), after, limit, _show_report)


@router.post("/collections/{slug:name}/reports", auth=may("admin", MANAGE), response={201: ReportOut})
@decorate_view(once)
def make_report(request: HttpRequest, name: str, body: ReportIn) -> Any:
    """Make a report; a worker does the work. The same report asked for again is the one that is there."""
    scope = scope_of(request)
    collection, by = scope.collection, scope.user.username
    # Read once: of many numbers in a request each would else be a statement.
    known = {run.pk: run for run in chosen.runs_of(collection)}
    if unknown := [str(number) for number in body.runs if number not in known]:
        raise BadInput(_("No run of this collection has the number %(numbers)s") % {"numbers": ", ".join(unknown)})
    runs = [known[number] for number in body.runs] or chosen.ready_runs(collection)
    k = body.k or boards.common_depth(runs)
    with transaction.atomic():
        # The first report of a collection makes the first version of its qrels.
        every = chosen.versions_of(collection) or [versions.first_version(collection, by)]
        before = versions.version_numbered(collection, body.before) if body.before else every[0]
        after = versions.version_numbered(collection, body.after) if body.after else every[-1]
        found = reports.request_report(collection, before, after, runs, k=k, by=by, aspects_k=body.aspects_k)
        record_act(scope, "report.asked", report=found.number, before=before.number, after=after.number, k=k)
    found.refresh_from_db()
    return Status(201, _show_report(found))


@router.get("/collections/{slug:name}/reports/{number}", auth=may("admin"), response=ReportOut)
def read_report(request: HttpRequest, name: str, number: int) -> Any:
    """Read a benchmark report with its measures."""
    return _show_report(numbered_or_404(Report.objects, scope_of(request).collection, number, _("Report not found.")))


def _show_report(row: Report) -> dict[str, Any]:
    shown = ("state", "done", "total", "error", "created_at")
    return {"number": row.number, "result": row.result or {}, **{name: getattr(row, name) for name in shown}}
