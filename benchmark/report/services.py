"""Services of reports and of the leaderboard: requests for reports that workers compute."""

from typing import Any

from django.utils.translation import gettext as _

from actions.services import Actor, action
from benchmark.models import Qrels, Report
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.report.options import ReportOptions
from benchmark.report.systems.chosen import common_depth, ready_runs
from benchmark.runs.builders import ready_run
from corpus.errors import BadInput, BadOption
from corpus.models import Collection


def _note(_options: ReportOptions | None, report: Report) -> dict[str, Any]:
    numbers = {"before": report.before.number, "after": report.after.number}
    weights = {"weights": report.options["weights"]} if "weights" in report.options else {}
    return {"report": report.number, **numbers, "k": report.options["k"], **weights}


@action("report.asked", noted=_note)
def ask_report(actor: Actor, collection: Collection, options: ReportOptions) -> Report:
    """Request a report, which a worker computes. An existing report with the same inputs is returned.

    Raises BadOption, and BadInput for runs that cannot be measured at this depth.
    """
    # The runs that the options name, or all that are ready and deep enough.
    runs = [ready_run(collection, name, "runs") for name in options.runs]
    if not options.runs:
        k = max(options.k, options.aspects_k or 1)
        runs, all_ready = ready_runs(collection, k), ready_runs(collection)
        if all_ready and not runs:
            message = _(
                "No run of %(collection)s returns %(k)s documents per query (%(runs)s): choose %(most)s or less"
            )
            depths = ", ".join(f"{run.name} {run.depth}" for run in all_ready[:10])
            largest = max(run.depth for run in all_ready)
            values = {"collection": collection.name, "k": k, "runs": depths, "most": largest}
            raise BadOption("k", message % values)
    # The first version is created or renewed before `after` is looked up, because `after` may be its number.
    before = _version_of(collection, "before", options.before) or versions.first_version(collection, actor.name)
    after = _version_of(collection, "after", options.after) or versions.latest_version(collection, Qrels.Kind.FILLED)
    arguments = (collection, before, after or before, runs, options.k, actor.name)
    weights = "" if options.weights == "plain" else options.weights
    report = reports.request_report(*arguments, aspects_k=options.aspects_k, weights=weights)
    report.refresh_from_db()  # The number is set by the database.
    return report


@action("report.asked", noted=_note)
def ask_leaderboard(actor: Actor, collection: Collection, *, weights: str = "") -> Report:
    """Request the report on all ready runs and the newest qrels, creating a first version. Raises BadInput.

    `weights`: COUNTS for means weighted by the query log's counts, "" for plain ones.
    """
    runs = ready_runs(collection)
    version = versions.latest_version(collection) or versions.first_version(collection, actor.name)
    report = reports.request_report(collection, version, version, runs, common_depth(runs), actor.name, weights=weights)
    report.refresh_from_db()
    return report


def _version_of(collection: Collection, option: str, number: int | None) -> Qrels | None:
    try:
        return None if number is None else versions.version_numbered(collection, number)
    except BadInput as error:
        raise BadOption(option, str(error)) from None
