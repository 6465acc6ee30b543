"""Services of reports and of the leaderboard: what is asked for, by whom, for a worker to make."""

from typing import Any

from django.utils.translation import gettext as _

from actions.services import Actor, action
from benchmark.models import Qrels, Report, Run
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.report.options import ReportOptions
from benchmark.runs.builders import ready_run
from benchmark.systems.chosen import common_depth, ready_runs
from corpus.errors import BadInput, BadOption
from corpus.models import Collection


def _note(_options: ReportOptions | None, report: Report) -> dict[str, Any]:
    numbers = {"before": report.before.number, "after": report.after.number}
    return {"report": report.number, **numbers, "k": report.options["k"]}


@action("report.asked", noted=_note)
def ask_report(actor: Actor, collection: Collection, options: ReportOptions) -> Report:
    """Make a report; a worker does the work. The same report asked for again is the one that is there.

    Raises BadOption, and BadInput for runs that cannot be measured so deep.
    """
    runs = _runs_of(collection, options)
    # The first version is made, or renewed, before `after` is looked up: its number may be the one that is meant.
    before = _version_of(collection, "before", options.before) or versions.first_version(collection, actor.name)
    after = _version_of(collection, "after", options.after) or versions.latest_version(collection, Qrels.Kind.FILLED)
    asked = (collection, before, after or before, runs, options.k, actor.name)
    report = reports.request_report(*asked, aspects_k=options.aspects_k)
    report.refresh_from_db()  # Its number is the database's.
    return report


@action("report.asked", noted=_note)
def ask_leaderboard(actor: Actor, collection: Collection) -> Report:
    """Ask for the report on all ready runs and the newest qrels; the first qrels are made here. Raises BadInput."""
    runs = ready_runs(collection)
    version = versions.latest_version(collection) or versions.first_version(collection, actor.name)
    report = reports.request_report(collection, version, version, runs, common_depth(runs), actor.name)
    report.refresh_from_db()
    return report


def _runs_of(collection: Collection, options: ReportOptions) -> list[Run]:
    """Return the runs that the options name, or all that are ready and deep enough."""
    if options.runs:
        return [ready_run(collection, name, "runs") for name in options.runs]
    k = max(options.k, options.aspects_k or 1)
    deep, every = ready_runs(collection, k), ready_runs(collection)
    if every and not deep:
        told = _("No run of %(collection)s returns %(k)s documents per query (%(runs)s): choose %(most)s or less")
        runs = ", ".join(f"{run.name} {run.depth}" for run in every[:10])
        about = {"collection": collection.name, "k": k, "runs": runs, "most": max(run.depth for run in every)}
        raise BadOption("k", told % about)
    return deep


def _version_of(collection: Collection, option: str, number: int | None) -> Qrels | None:
    try:
        return None if number is None else versions.version_numbered(collection, number)
    except BadInput as error:
        raise BadOption(option, str(error)) from None
