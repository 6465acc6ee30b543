"""Learning curves: the same training on growing parts of one set, and what the last labels bought."""

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import validate_form
from api.routes.model_jobs import JobAct
from api.routes.pages import Cursor, Limit, Page, page_of
from api.routes.trainings import TrainingIn, bind_form, option_places
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from training.curves import services
from training.curves.forms import MOST_POINTS, CurveForm
from training.curves.results import describe_last, describe_next
from training.jobs import pages
from training.jobs.held_out import MEASURE
from training.models import LearningCurve

router = Router(tags=["training"])
MANAGE = AccessToken.TokenScope.MANAGE
ACTS = {"cancel": services.cancel_points, "go-on": services.resume_points}


class CurveIn(TrainingIn):
    """Learning curve to begin: a training, the numbers of labels to repeat it with, and the order of the queries."""

    points: list[int] = Field(min_length=1, max_length=MOST_POINTS, description="Numbers of labels.")
    order: Literal["time", "random"] = "time"


class CurvePointOut(Schema):
    """A training of a curve; `value` null: its model was not measured yet."""

    training: int
    state: str
    asked: int
    labels: int | None
    queries: int | None
    value: float | None
    low: float | None
    high: float | None


class CurveOut(Schema):
    """A learning curve; `last` and `next` say what the last labels bought, and what more would."""

    number: int
    recipe: str
    order: str = Field(description="time or random.")
    measure: str
    made_by: str
    created_at: datetime
    points: list[CurvePointOut]
    last: str
    next: str


@router.get("/collections/{slug:name}/curves", auth=may("admin"), response=Page[CurveOut])
def list_curves(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the learning curves, the oldest first."""
    return page_of(_curves(request), after, limit, _show_curve)


@router.post("/collections/{slug:name}/curves", auth=may("admin", MANAGE), response={201: CurveOut})
@decorate_view(once)
def start_curve(request: HttpRequest, name: str, body: CurveIn) -> Any:
    """Put the trainings of a learning curve into the queue."""
    scope = scope_of(request)
    # The page's form takes the numbers in one text.
    points = ",".join(map(str, body.points))
    form = bind_form(scope.collection, body, CurveForm, points=points, order=body.order)
    given = validate_form(form, option_places())
    if why := pages.why_not():
        raise BadInput(why)
    with transaction.atomic():
        curve = services.begin_curve(
            data=Path(given["training_set"]),
            collection=scope.collection,
            user=scope.user.username,
            **form.curve_options(),
        )
        record(scope, "training.started", curve=curve.number, recipe=curve.recipe)
    return Status(201, _show_curve(_find_curve(request, curve.number)))


@router.get("/collections/{slug:name}/curves/{number}", auth=may("admin"), response=CurveOut)
def read_curve(request: HttpRequest, name: str, number: int) -> Any:
    """Read a learning curve as far as its trainings are finished."""
    return _show_curve(_find_curve(request, number))


@router.post("/collections/{slug:name}/curves/{number}/{act}", auth=may("admin", MANAGE), response=CurveOut)
@decorate_view(once)
def control_curve(request: HttpRequest, name: str, number: int, act: JobAct) -> Any:
    """Cancel the points that are not over, or let those go on that failed or were cancelled."""
    scope, found = scope_of(request), _find_curve(request, number)
    with transaction.atomic():
        changed = ACTS[act](found)
        if not changed:
            raise BadInput(_("No changes made: no point's state allows this action."))
        record(scope, "training.control", curve=found.number, what=act, points=changed)
    return _show_curve(_find_curve(request, number))


def _curves(request: HttpRequest) -> Any:
    return LearningCurve.objects.filter(collection=scope_of(request).collection)


def _find_curve(request: HttpRequest, number: int) -> LearningCurve:
    rows, collection = _curves(request), scope_of(request).collection
    found: LearningCurve = numbered_or_404(rows, collection, number, _("Learning curve not found."))
    return found


def _show_curve(row: LearningCurve) -> dict[str, Any]:
    points = services.list_points(row)
    result = services.read_result(points)
    figures = [one for _point, one in result.points]
    shown = {name: getattr(row, name) for name in ("recipe", "order", "made_by", "created_at")}
    return {
        "number": row.number,
        **shown,
        "measure": MEASURE,
        "points": [_show_point(point, one) for point, one in zip(points, figures, strict=True)],
        "last": describe_last(result),
        "next": describe_next(result),
    }


def _show_point(point: Any, found: Any) -> dict[str, Any]:
    figures = {name: getattr(found, name, None) for name in ("value", "low", "high")}
    counts = {name: getattr(point, name) for name in ("asked", "labels", "queries")}
    return {"training": point.job.number, "state": point.job.state, **counts, **figures}
