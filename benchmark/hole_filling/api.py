"""Hole filling: what it would come to, its start, how far it is, its end."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from api.authentication import MANAGE, may, scope_of
from api.estimates import JobEstimateOut, show_estimate
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import Given, validate_form
from benchmark.forms import PEOPLE, HoleFillingForm
from benchmark.hole_filling import planning, stages, starting
from benchmark.models import Filling, Qrels
from benchmark.qrels import versions
from benchmark.systems import chosen
from corpus.collections.audit_log import record_act
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from jobs.models import JobState
from judges.campaigns.selectors import with_campaign_number

router = Router(tags=["hole filling"])
# What the page's form calls otherwise.
NAMES = {"k": "depth"}


class HoleJudgingIn(Given):
    """Judges of the holes, people or a policy of models, and what models may spend."""

    policy: Literal["people", "debate+ensemble", "debate", "ensemble", "single"] = "people"
    panel: str = Field("", max_length=100, description="Empty: the panel that is in use.")
    filter: list[str] = Field([], max_length=3, description="None, or three judges of different families.")
    budget: float | None = Field(None, ge=0.000001, le=1e9, description="USD.")
    max_calls: int | None = Field(None, ge=1, lt=1 << 31)


class FillingIn(HoleJudgingIn):
    """A hole filling: whose documents are pooled to which depth, and who judges those without a grade."""

    runs: list[int] = Field([], max_length=1000, description="Their numbers; none: all that are ready.")
    depth: int = Field(chosen.K, ge=1, le=1000)
    qrels: int | None = Field(None, ge=1, lt=1 << 31, description="The version to complete; null: the newest.")


class FillingEstimateOut(JobEstimateOut):
    """Estimate of a hole filling: its pool, the pairs that are judged already, and what judges would be asked."""

    queries: int
    pool: int
    judged: int
    candidates: int
    known: int = Field(description="Of the candidates: people labelled them, nobody is asked again.")


class FillingOut(Schema):
    """A hole filling. Its campaign can be paused and resumed as every other one."""

    number: int
    state: str = Field(description="preparing, judging, people, finishing, filled or cancelled.")
    runs: list[int]
    depth: int
    before: int = Field(description="The version of the qrels that is completed.")
    after: int | None = Field(description="The filled version; null: there is none yet.")
    campaign: int | None = Field(description="Null: people judge every pair.")
    policy: str
    funnel: dict[str, Any] = Field(description="Pairs by step: docs/hole-filling.md.")
    error: str
    made_by: str
    created_at: datetime
    ended_at: datetime | None


@router.get("/collections/{slug:name}/hole-fillings", auth=may("admin"), response=Page[FillingOut])
def list_fillings(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the hole fillings, the oldest first, as they were counted last."""
    # To count as of now would be a statement or more for each filling; `_show_one` does that for one.
    return page_of(_fillings(request), after, limit, lambda row: _show_filling(row, row.funnel))


@router.post(
    "/collections/{slug:name}/hole-fillings/estimate",
    auth=may("admin"),
    response=FillingEstimateOut,
)
def estimate_filling(request: HttpRequest, name: str, body: FillingIn) -> Any:
    """Count the pairs of a hole filling and estimate its cost; nothing starts."""
    scope = scope_of(request)
    form = _form_of(scope.collection, body)
    given, asked = form.cleaned_data, form.asked()
    with transaction.atomic():
        before = form.version() or versions.original_version(scope.collection, by=scope.user.username)
        where = (scope.collection, form.chosen(), given["k"], before)
        counted = planning.preview_filling(*where)
        estimate = None
        if given["policy"] != PEOPLE:
            estimate = planning.estimate_cost(*where, asked["policy"], asked["panel"], asked["filters"])
        # An estimate leaves no version of the qrels behind.
        transaction.set_rollback(True)
    return {**counted, **show_estimate(estimate)}


@router.post("/collections/{slug:name}/hole-fillings", auth=may("admin", MANAGE), response={201: FillingOut})
@decorate_view(once)
def start_filling(request: HttpRequest, name: str, body: FillingIn) -> Any:
    """Start a hole filling, or go on with the same one."""
    scope = scope_of(request)
    form = _form_of(scope.collection, body)
    with transaction.atomic():
        found = starting.start_filling(
            collection=scope.collection,
            runs=form.chosen(),
            depth=body.depth,
            before=form.version(),
            by=scope.user.username,
            later=True,
            **form.asked(),
        )
        record_act(scope, "filling.started", filling=found.number, policy=body.policy, pairs=found.funnel["candidates"])
    return Status(201, _show_one(request, found.number))


def _form_of(collection: Collection, body: FillingIn) -> HoleFillingForm:
    """Fill the page's form. Raises ValidationError, which names wrong fields."""
    runs, known = chosen.runs_of(collection), chosen.versions_of(collection)
    newest = known[-1] if known else None
    chosen_version = versions.version_numbered(collection, body.qrels) if body.qrels else newest
    before = str(chosen_version.pk) if chosen_version else ""
    picked = body.runs or [run.pk for run in runs if run.state == JobState.READY]
    given = {**body.dict(), "runs": picked, "k": body.depth, "before": before}
    form = HoleFillingForm(given, collection=collection, runs=runs, versions=known)
    validate_form(form, {**NAMES, "before": "qrels"})
    return form


@router.get("/collections/{slug:name}/hole-fillings/{number}", auth=may("admin"), response=FillingOut)
def read_filling(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a hole filling is."""
    return _show_one(request, number)


@router.post(
    "/collections/{slug:name}/hole-fillings/{number}/{act}",
    auth=may("admin", MANAGE),
    response=FillingOut,
)
@decorate_view(once)
def control_filling(request: HttpRequest, name: str, number: int, act: Literal["finish", "cancel"]) -> Any:
    """Make the filled version of what is resolved by now (a large one by a worker), or cancel the filling."""
    scope, found = scope_of(request), _find_filling(request, number)
    with transaction.atomic():
        if act == "cancel":
            stages.cancel_filling(found)
        # Who asks for it once more ends nothing.
        if act == "cancel" or stages.ask_to_finish(found, by=scope.user.username):
            record_act(scope, "filling.ended", filling=found.number, what=act)
    return _show_one(request, number)


def _fillings(request: HttpRequest) -> Any:
    # The pairs of a filling are thousands of numbers in one column, and only counts are shown.
    rows = Filling.objects.select_related("before", "after", "collection").defer("pairs").prefetch_related("runs")
    return with_campaign_number(rows.filter(collection=scope_of(request).collection))


def _find_filling(request: HttpRequest, number: int) -> Filling:
    found: Filling = numbered_or_404(
        _fillings(request), scope_of(request).collection, number, _("Hole filling not found.")
    )
    return found


def _show_one(request: HttpRequest, number: int) -> dict[str, Any]:
    row = _find_filling(request, number)
    return _show_filling(row, stages.current_funnel(row).document)


def _show_filling(row: Filling, funnel: dict[str, Any]) -> dict[str, Any]:
    shown = ("state", "depth", "error", "made_by", "created_at", "ended_at")
    after: Qrels | None = row.after
    return {
        "number": row.number,
        "campaign": row.campaign_number,  # type: ignore[attr-defined]
        **{name: getattr(row, name) for name in shown},
        "runs": sorted(run.pk for run in row.runs.all()),
        "before": row.before.number,
        "after": after.number if after else None,
        "policy": row.options.get("policy") or "",
        "funnel": funnel,
    }
