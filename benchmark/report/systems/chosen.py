"""Selectors that the benchmark's pages share: a collection's runs, qrels versions and stored reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from benchmark.models import Filling, Qrels, Report, Run
from benchmark.report.tabling import CHANGE_FIELDS
from benchmark.report.weighting import reports_by
from benchmark.runs.hybrid import describe_scores
from corpus.models import Collection, Label
from jobs.models import JobState, LeasedJob
from judges.model_jobs import pages
from judges.models import Campaign

K = 10  # The default depth at which systems are compared.


def runs_of(collection: Collection) -> list[Run]:
    """Return the collection's runs that are not deleted, by name."""
    return list(Run.objects.filter(collection=collection, is_deleted=False).order_by("name"))


def ready_runs(collection: Collection, k: int = 0) -> list[Run]:
    """Return the collection's finished runs that can be measured at k, by name."""
    # A run without a depth returned all that it found.
    return [run for run in runs_of(collection) if run.state == JobState.READY and (not run.depth or run.depth >= k)]


def common_depth(runs: Sequence[Run]) -> int:
    """Return the depth at which all of these runs can be measured, at most K."""
    # Beyond its depth a run has no documents, so measures at a larger k would count them as missing.
    return min(K, *(run.depth or K for run in runs)) if runs else K


def versions_of(collection: Collection) -> list[Qrels]:
    """Return qrels versions, the oldest first."""
    return list(Qrels.objects.filter(collection=collection).order_by("number"))


def version_title(version: Qrels) -> str:
    """Return the title of a version on pages, such as "2, filled"."""
    return _("%(number)s, %(kind)s") % {"number": version.number, "kind": version.get_kind_display()}


def newest_report(collection: Collection, *, compares: bool, weights: str | None = "") -> Report | None:
    """Return the newest report, ready or not: of two versions, or (not `compares`) of the bounds of a single one.

    `weights`: COUNTS for means weighted by counts, "" for plain ones; None: either.
    """
    reports = Report.objects.filter(collection=collection).select_related("before", "after").order_by("-pk")
    reports = reports if weights is None else reports_by(weights, reports)
    reports = reports.exclude(after=F("before")) if compares else reports.filter(after=F("before"))
    # A cancelled report never gets a result.
    return reports.exclude(state=JobState.CANCELLED).first()


def complete_figures(value: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in None for the figures that a measure lacks: Hole@k has no before, Judged@k no p."""
    return {**dict.fromkeys((*CHANGE_FIELDS, "shift")), "letters_before": "", "letters_after": "", **value}


@dataclass(frozen=True)
class StoredReport:
    """A report with the names of its runs. `new`: ready runs that it does not include."""

    report: Report
    names: dict[int, str]
    new: list[str]
    notes: Mapping[int, str]  # By run, how a hybrid read the reranked run's scores.

    @property
    def result(self) -> dict[str, Any]:
        """Return the report's result; {} until it is ready."""
        return self.report.result or {}

    @property
    def k(self) -> int:
        """Return the depth at which the report measures."""
        return int(self.report.options.get("k", K))

    @property
    def weights(self) -> str:
        """Return by what its means are weighted; "" for plain means."""
        return str(self.report.options.get("weights", ""))

    @property
    def is_ready(self) -> bool:
        """Return whether the report has been computed."""
        return self.report.state == JobState.READY and bool(self.report.result)

    def name(self, run: int) -> str:
        """Return the current name of a run; for a deleted run, its name in the report."""
        return self.names.get(run, f"#{run}")


def stored_report(report: Report | None, runs: Iterable[Run]) -> StoredReport | None:
    """Return a report with the names of its runs, and of the ready runs that it does not include."""
    if report is None:
        return None
    ids = set(report.options.get("runs", []))
    names = {int(system["run"]): str(system.get("name", "")) for system in (report.result or {}).get("systems", [])}
    current_names = {run.pk: run.name for run in runs}
    new_runs = [run.name for run in runs if run.state == JobState.READY and run.pk not in ids]
    notes = {run.pk: note for run in runs if (note := describe_scores(run))}
    # The current name takes precedence over the one in the report.
    return StoredReport(report, names | current_names, new_runs, notes)


def is_unattended(*followed: LeasedJob | Filling | None) -> bool:
    """Return whether a job has waited for some seconds without a worker."""

    def needs_worker(job: LeasedJob | Filling) -> bool:
        if isinstance(job, LeasedJob):
            return not job.is_over
        if job.state != Filling.State.JUDGING:
            return job.needs_worker
        return Campaign.objects.filter(pk=job.campaign or 0, state=Campaign.State.RUNNING).exists()

    return pages.is_unattended(*followed, needs_worker=needs_worker)


UNDER_WAY = (Filling.State.PREPARING, Filling.State.JUDGING, Filling.State.FINISHING, Filling.State.PEOPLE)


def next_step(collection: Collection, runs: list[Run], leaderboard: StoredReport | None) -> dict[str, Any]:
    """Return the next step to recommend, by `key`; "" where nothing is left to do."""
    report = stored_report(newest_report(collection, compares=True), runs)
    fillings = Filling.objects.filter(collection=collection).exclude(state=Filling.State.CANCELLED)
    filling = fillings.defer("pairs").order_by("-pk").first()
    versions = versions_of(collection)
    # Pairs have labels, and no version contains labels.
    is_unused = not {version.kind for version in versions} & {Qrels.Kind.LABELS.value, Qrels.Kind.FILLED.value}
    is_unused = is_unused and Label.objects.filter(pair__collection=collection).exists()
    bounds: dict[str, Any] = leaderboard.result["safety"] if leaderboard else {"unsettled": [], "settled": 0}
    # In order of urgency: the first whose condition is true is shown.
    steps = [
        ("filling", filling is not None and filling.state in UNDER_WAY),
        ("labels", leaderboard is not None and is_unused),
        ("report", report is None and len(versions) > 1 and leaderboard is not None),
        ("again", bool(report and report.is_ready and report.new)),
        ("fill", bool(bounds["unsettled"])),
        ("", True),
    ]
    return {
        "key": next(key for key, condition in steps if condition),
        "filling": filling,
        "versions": versions,
        "unsettled": len(bounds["unsettled"]),
        "orders": len(bounds["unsettled"]) + bounds["settled"],
    }
