"""`learning_curve RECIPE --data DIR --points 500,... --base B --out D`: train on growing subsets of an export."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from django.utils.module_loading import import_string

from actions.options import add_arguments, read_arguments
from corpus.commands import QuorumCommand
from corpus.errors import Incomplete
from corpus.models import Collection
from training.curves import services
from training.curves.options import CurveOptions
from training.curves.results import describe_last, describe_next, draw_curve, result_document
from training.jobs import lifecycle, worker_pool
from training.jobs.options import read_config
from training.models import CurvePoint, Job, LearningCurve
from training.recipes.job_folder import write_atomically
from training.recipes.subsets import order_queries, plan_subsets
from training.recipes.table import RECIPES, recipe_options


class Command(QuorumCommand):
    """Queue a training for each point, wait for them if asked to, and write the result once all are over."""

    positional = ("recipe",)
    help = (
        "Train a recipe on growing parts of an export, as jobs of the queue `gpu`; say what the last labels bought. "
        "Running the command again continues the points that are not finished and writes what the curve says."
    )

    def arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, CurveOptions, self.positional)
        parser.add_argument("--out", type=Path, required=True, metavar="D", help="output folder; must be new or empty")
        parser.add_argument("--config", type=Path, metavar="F.toml", help="TOML file with options; those here win")
        parser.add_argument("--wait", action="store_true", help="wait for the end and show progress")

    def run(self, **options: Any) -> object:
        """Start the curve or resume it, and write its result if it is over."""
        curve = self.begin(options)
        if options["wait"]:
            unfinished = services.list_points(curve)
            worker_pool.wait_for(
                [point.job for point in unfinished],
                lambda: f"curve {curve.number}: {_format_states(unfinished)}",
                self.stderr.write,
            )
        points = services.list_points(curve)
        if not all(point.job.is_over for point in points):
            self.say(f"curve {curve.number}: {_format_states(points)}; run the command again to see what it says")
            return self.describe(curve, points)
        return self.end(curve, points)

    def begin(self, options: dict[str, Any]) -> LearningCurve:
        """Return the curve of the output folder, with its unfinished points requeued, or a new one."""
        curve_options = read_arguments(CurveOptions, options, **read_config(options))
        request = services.read_curve_request(self.actor, None, curve_options)
        curve = services.find_curve(options["out"], **request)
        if curve is not None:
            with transaction.atomic():
                for point in services.list_points(curve):
                    lifecycle.resume_job(point.job)
            return curve
        entry = RECIPES[curve_options.recipe]
        seed = recipe_options(curve_options.recipe, curve_options.option_values).seed
        # A command may read the whole set, and refuses at once what a page leaves to the jobs.
        plan_subsets(order_queries(request["data"], entry.format, curve_options.order, seed), curve_options.points)
        name = import_string(entry.reader)(request["data"]).collection
        collection = Collection.objects.filter(name=name).first()
        return services.start_curve(self.actor, collection, curve_options, out=options["out"])

    def end(self, curve: LearningCurve, points: list[CurvePoint]) -> object:
        """Write curve.json, curve.csv and curve.svg. Raises Incomplete if a point has no measure."""
        out, result = Path(curve.out), services.read_result(points)
        document = self.describe(curve, points)
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / "curve.json", json.dumps(document, ensure_ascii=False, indent=1) + "\n")
        if chart := draw_curve(result, f"{curve.recipe} ({points[0].job.words})"):
            write_atomically(out / "curve.csv", chart.csv())
            write_atomically(out / "curve.svg", chart.standalone())
        for line in (describe_last(result), describe_next(result)):
            self.say(line)
        if failed := [point for point in points if point.job.state != Job.State.FINISHED]:
            states = "; ".join(f"{point.size:,}: {point.job.error or point.job.state}" for point in failed)
            raise Incomplete(f"{len(failed)} of {len(points)} points have no measure ({states})", document)
        return document

    def describe(self, curve: LearningCurve, points: list[CurvePoint]) -> dict[str, Any]:
        """Return a curve with its result as a JSON document."""
        document: dict[str, Any] = {"curve": curve.number, "recipe": curve.recipe, "order": curve.order}
        document["jobs"] = [point.job.number for point in points]
        return document | result_document(services.read_result(points))


def _format_states(points: list[CurvePoint]) -> str:
    return ", ".join(
        f"{point.size:,} labels {point.job.state}"
        + (f" (step {point.job.done} of {point.job.total})" if point.job.state == Job.State.RUNNING else "")
        for point in points
    )
