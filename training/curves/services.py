"""Services of learning curves: start the trainings of one on the GPU queue, cancel and resume them, read the result."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from actions.services import Actor, action
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import leases
from store.files import fetch
from training.curves.options import CurveOptions
from training.curves.results import CurveResult, MeasuredPoint, compute_result
from training.jobs import lifecycle
from training.jobs.held_out import read_held_out
from training.jobs.services import read_request
from training.models import CurvePoint, Job, LearningCurve
from training.recipes import table
from training.recipes.job_folder import check_new
from training.recipes.subsets import check_quickly


@action("training.started", key="curve", noted=lambda options, _curve: {"recipe": options.recipe})
def start_curve(
    actor: Actor, collection: Collection | None, options: CurveOptions, *, out: Path | None = None
) -> LearningCurve:
    """Queue a training for each point of the curve. Raises BadOption and BadInput."""
    return begin_curve(**read_curve_request(actor, collection, options), folder=out)


def read_curve_request(actor: Actor, collection: Collection | None, options: CurveOptions) -> dict[str, Any]:
    """Return the arguments of begin_curve. Raises BadOption and BadInput."""
    return {**read_request(actor, collection, options), "points": list(options.points), "order": options.order.value}


@transaction.atomic
@lifecycle.translate_refusals()
def begin_curve(
    *,
    recipe: str,
    data: Path,
    base: str,
    points: Sequence[int],
    order: str,
    option_values: Mapping[str, Any],
    folder: Path | None = None,
    collection: Collection | None = None,
    device: str = "cpu",
    user: str = "",
) -> LearningCurve:
    """Queue a training for each point of the curve. Raises BadInput for errors that show without reading the set.

    `folder`: where the models go, VAR/models by default.
    """
    seed = table.recipe_options(recipe, option_values).seed
    check_quickly(data, table.RECIPES[recipe].format, order, points)
    if folder is not None:
        # An old model in the folder would be taken for a point of this curve.
        check_new(folder)
    curve = LearningCurve.objects.create(
        collection=collection, recipe=recipe, order=order, out=str(folder.resolve()) if folder else "", made_by=user
    )
    for point in points:
        job = lifecycle.begin_training(
            recipe=recipe,
            data=data,
            base=base,
            out=folder / str(point) if folder else None,
            option_values=option_values,
            collection=collection,
            device=device,
            user=user,
            # The job plans its subset itself, since labels are counted where the rows are read.
            subset={"order": order, "seed": seed, "points": list(points), "asked": point},
        )
        CurvePoint.objects.create(curve=curve, job=job, asked=point)
    return curve


def find_curve(
    folder: Path,
    *,
    recipe: str,
    data: Path,
    base: str,
    points: Sequence[int],
    order: str,
    option_values: Mapping[str, Any],
    **_about: Any,
) -> LearningCurve | None:
    """Return the curve whose models go to this folder, or None. Raises BadInput if it was started by other options."""
    curve = LearningCurve.objects.filter(out=str(folder.resolve())).first()
    if curve is None:
        return None
    requested_points = [(recipe, str(data.resolve()), base, dict(option_values), order, point) for point in points]
    if requested_points != [
        (*(point.job.options[name] for name in ("recipe", "data", "base", "options")), curve.order, point.asked)
        for point in list_points(curve)
    ]:
        raise BadInput(_("%(out)s contains a learning curve with other options: name a new folder") % {"out": folder})
    return curve


def list_points(curve: LearningCurve) -> list[CurvePoint]:
    """Return the points with their jobs, the fewest labels first."""
    return list(curve.points.select_related("job").order_by("asked"))


ACTS = {"cancel": leases.ask_to_cancel, "go-on": lifecycle.resume_job}


@action(
    "training.control",
    noted=lambda act, points: {"curve": points[0].curve.number, "what": act, "points": len(points)},
)
def control_curve(_actor: Actor, curve: LearningCurve, act: str) -> list[CurvePoint]:
    """Cancel the points that are waiting or running, or requeue those that failed or were cancelled.

    Return the points that changed. Raises BadInput if there are none.
    """
    points = [point for point in list_points(curve) if ACTS[act](point.job)]
    if not points:
        raise BadInput(_("No changes made: no point's state allows this action."))
    return points


def read_result(points: Sequence[CurvePoint]) -> CurveResult:
    """Return the result of the points that are finished so far."""
    return compute_result(
        [
            MeasuredPoint(point.size, point.queries, str(point.job.get_state_display()), read_point(point.job))
            for point in points
        ]
    )


def read_point(job: Job) -> Mapping[str, float]:
    """Return the measure of each held-out query of a job's model; empty unless the job is finished."""
    if job.state != Job.State.FINISHED:
        return {}
    return read_held_out(fetch(Path(job.options["out"]) / "reranker.json").parent).tuned
