"""Reports: find, request, compute; one report for each set of inputs (docs/workshop.md)."""

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from time import sleep
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _

from benchmark.bounds import order
from benchmark.measures.arrays import RANKING
from benchmark.measures.following import became_irrelevant, p_mrr
from benchmark.measures.graded_runs import Floats
from benchmark.models import Qrels, Report, ReportValues, Run
from benchmark.qrels import reading
from benchmark.report import inputs, weighting
from benchmark.report.computing import VERSION, compute_report
from benchmark.runs import rankings
from benchmark.runs.costs import cost_document
from benchmark.significance import pairwise
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection
from jobs import leases
from jobs.models import JobState
from jobs.notifications import notify

MAKE_REPORT = "benchmark.make_report"
K = 10
SEED = 0
DEEPEST = 1000
POLL_S = 0.2


def key_of(
    collection: Collection,
    before: Qrels,
    after: Qrels,
    runs: Sequence[Run],
    k: int,
    aspects_k: int | None = None,
    mark: str = "",
) -> str:
    """Return the sha256 of all inputs of a report. Runs and versions never change once they are ready.

    `mark`: what identifies the counts of the queries by which means are weighted (weighting.counts_mark); "": plain.
    """
    # The highest grade and the lowest relevant one change the figures of the same qrels.
    parts = {
        "version": VERSION,
        "before": before.pk,
        "after": after.pk,
        # Sorted: the same runs in another order are the same report.
        "runs": sorted(run.pk for run in runs),
        "k": k,
        "aspects_k": aspects_k or k,
        "seed": SEED,
        "relevant_from": collection.relevant_from,
        "grades": collection.grades,
        # The newest revision identifies the aspects, because their history only grows.
        "aspects": inputs.aspects_mark(collection),
        # Plain reports keep the keys that they had before there were weights.
        **({"weights": [weighting.COUNTS, mark]} if mark else {}),
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def find_report(
    collection: Collection, before: Qrels, after: Qrels, runs: Sequence[Run], k: int = K, mark: str = ""
) -> Report | None:
    """Return the report on exactly these inputs in any state; None if it was not requested. `mark`: as for key_of."""
    key = key_of(collection, before, after, runs, k, mark=mark)
    return Report.objects.filter(collection=collection, key=key).first()


def request_report(
    collection: Collection,
    before: Qrels,
    after: Qrels,
    runs: Sequence[Run],
    k: int = K,
    by: str = "",
    *,
    aspects_k: int | None = None,
    weights: str = "",
) -> Report:
    """Return the report, which a worker computes unless it exists. A failed or cancelled report is tried again.

    `aspects_k`: the depth of alpha-nDCG and A-Recall, by default k (25 in BRIGHT-Pro). `weights`: COUNTS for means
    weighted by the query log's counts, "" for plain ones.

    Raises BadOption where no query has a count, BadInput without runs, for runs that are not ready, and for another
    collection's runs or qrels.
    """
    _check_runs(collection, before, after, runs, k, aspects_k or k)
    mark = weighting.counts_mark(collection) if weights else ""
    options: dict[str, object] = {"runs": sorted(run.pk for run in runs), "k": k, "seed": SEED}
    options |= {"aspects_k": aspects_k} if aspects_k else {}
    options |= {"weights": weights, "counts": mark} if mark else {}
    report, is_new = Report.objects.get_or_create(
        collection=collection,
        key=key_of(collection, before, after, runs, k, aspects_k, mark),
        defaults={"before": before, "after": after, "options": options, "made_by": by},
    )
    # Two simultaneous requests get the same row; a failed or cancelled one is resumed.
    if is_new or leases.resume(report):
        transaction.on_commit(lambda: notify(MAKE_REPORT))
        report.refresh_from_db()
    return report


def _check_runs(collection: Collection, before: Qrels, after: Qrels, runs: Sequence[Run], *depths: int) -> None:
    if not runs:
        raise BadInput(_("Choose at least one run."))
    for k in depths:
        if not 1 <= k <= DEEPEST:
            raise BadInput(_("k must be between 1 and %(most)d, not %(k)s.") % {"most": DEEPEST, "k": k})
    for run in runs:
        if run.collection_id != collection.pk or run.is_deleted:
            raise BadInput(_("%(collection)s has no run %(run)s.") % {"collection": collection.name, "run": run.name})
        if run.state != JobState.READY:
            raise BadInput(_("The run %(run)s is not ready. Wait until it is, or leave it out.") % {"run": run.name})
        if run.depth and run.depth < max(depths):
            message = _("The run %(run)s returns only %(depth)d documents per query. Choose k up to this number.")
            raise BadInput(message % {"run": run.name, "depth": run.depth})
    if {before.collection_id, after.collection_id} != {collection.pk}:
        raise BadInput(_("These qrels do not belong to %(collection)s.") % {"collection": collection.name})


def ensure_report(*arguments: Any, **options: Any) -> Report:
    """Request a report and wait for it, as `finish_report` does. Raises BadInput when it fails."""
    return finish_report(request_report(*arguments, **options))


def finish_report(report: Report) -> Report:
    """Compute a report in this process, or wait for the worker that has claimed it. Raises BadInput when it fails."""
    while not report.is_over:
        if (row := leases.claim(Report, pk=report.pk)) is not None:
            work_on_report(row)
        else:
            sleep(POLL_S)
        report.refresh_from_db()
    if report.state != JobState.READY:
        raise BadInput(
            _("The report could not be created: %(why)s") % {"why": report.error or report.get_state_display()}
        )
    return report


def work_on_report(report: Report, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Compute a claimed report and record the outcome."""
    leases.perform(report, lambda lease: make_report(report, lease.progress), expected=QuorumError)


def make_report(report: Report, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Compute a claimed report and store it.

    1. Load the inputs and compute the measures.
    2. For a single version of the qrels, add what a leaderboard shows: how far unjudged pairs could
       still change the order, comparisons of all pairs, intervals of means, costs of runs.
    3. Store the result and each query's values, unless another worker has claimed the report meanwhile.
    """
    question = inputs.load_question(report)
    if not question.queries:
        raise BadInput(_("Neither the qrels nor the runs contain a query."))
    result, values_by_measure = compute_report(question, progress)
    # Counted now and stored, because a page would read every ranking for it.
    outdated = inputs.count_outdated(report.after, [system.run for system in question.systems], question.k)
    for system in result["systems"]:
        system["outdated"] = outdated.get(system["run"], 0)
    if report.before_id == report.after_id:
        run_rankings = {system.run: system.rankings for system in question.systems}
        top = report.collection.grades
        runs = Run.objects.in_bulk(run_rankings)
        ranking_values = {key: values_by_measure[key].after for key in RANKING}
        weights = question.weights_of(question.queries)
        if weights is not None:
            ranking_values = {key: values * weights for key, values in ranking_values.items()}
        bounded = (run_rankings, question.before, top, question.k, progress, question.counts)
        result |= {
            "safety": order.compute_bounds(*bounded),
            "pairs": pairwise.compare_pairs(ranking_values, question.seed, weights),
            "intervals": pairwise.mean_intervals(ranking_values, question.seed, weights),
            "costs": [cost_document(runs[system.run]) for system in question.systems],
        }
    rows = []
    for key, measure_values in values_by_measure.items():
        for position, system in enumerate(question.systems):
            values = {
                "before": [] if measure_values.before is None else measure_values.before[position].tolist(),
                "after": measure_values.after[position].tolist(),
            }
            rows.append(ReportValues(report=report, run_id=system.run, measure=key, **values))
    with transaction.atomic():
        # Values are stored only under the lease: another worker may have the report by now.
        if not leases.finish(report, JobState.READY, result=result):
            return
        ReportValues.objects.filter(report=report).delete()
        # Rows of arrays are long: fifty of them are a statement of some megabytes.
        ReportValues.objects.bulk_create(rows, batch_size=50)


def query_values(report: Report, run: Run | int, measure: str) -> tuple[Floats, Floats]:
    """Return the values by query before and after, in the order of the measure's queries.

    `before` is empty for a measure of a single version.
    """
    row = ReportValues.objects.get(report=report, run=run, measure=measure)
    return np.array(row.before), np.array(row.after)


def measure_following(original: Run, changed: Run, before: Qrels, after: Qrels) -> dict[str, Any]:
    """Return p-MRR of a system's two runs; `after` has the judgments under the changed instructions.

    Raises BadInput without a change.
    """
    irrelevant = became_irrelevant(
        reading.load_named(before), reading.load_named(after), original.collection.relevant_from
    )
    return p_mrr(rankings.as_run(original), rankings.as_run(changed), irrelevant)
