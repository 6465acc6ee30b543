"""The benchmark's home: what there is, how safe its order is, what filling did, and what to do next."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from benchmark.models import Filling, Qrels, Run
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from corpus.models import Collection
from jobs.models import JobState, LeasedJob

MOVING = (Filling.State.PREPARING, Filling.State.JUDGING, Filling.State.FINISHING)
UNDER_WAY = (*MOVING, Filling.State.PEOPLE)


@dataclass(frozen=True)
class BenchmarkOverview:
    """Everything that the home says."""

    runs: list[Run]
    versions: list[Qrels]
    safety: StoredReport | None
    report: StoredReport | None
    filling: Filling | None

    @property
    def ready(self) -> list[Run]:
        """Runs with all their rankings."""
        return [run for run in self.runs if run.state == JobState.READY]

    @property
    def runs_in_progress(self) -> list[Run]:
        """Runs that a worker makes now."""
        return [run for run in self.runs if not run.is_over]

    @property
    def followed(self) -> list[LeasedJob | Filling]:
        """What changes by itself: runs and reports in the making, a filling that workers or judges are at."""
        reports = [one.report for one in (self.safety, self.report) if one is not None and not one.report.is_over]
        fillings = [self.filling] if self.filling is not None and self.filling.state in MOVING else []
        return [*self.runs_in_progress, *reports, *fillings]

    @property
    def is_moving(self) -> bool:
        """The page has something to follow."""
        return bool(self.followed)

    @property
    def newest(self) -> Qrels | None:
        """The newest version of the qrels."""
        return self.versions[-1] if self.versions else None

    @property
    def is_old(self) -> bool:
        """The order was looked at by an older version of the qrels than the newest."""
        return bool(self.safety and self.newest and self.safety.report.before_id != self.newest.pk)

    @property
    def next(self) -> tuple[str, str]:
        """What to do next: a key for the template, and why."""
        for key, holds, why in self._steps():
            if holds:
                return key, why
        return "done", _("Every step is done. A new system is one more run: its holes come to the same pool.")

    def _steps(self) -> list[tuple[str, bool, str]]:
        under_way = self.filling is not None and self.filling.state in UNDER_WAY
        open_order = bool(self.safety and self.safety.result.get("safety", {}).get("unsettled"))
        return [
            ("runs", len(self.ready) < 2 and not self.runs_in_progress,
             _("Bring two runs or more: only systems beside each other have an order.")),
            ("wait", bool(self.runs_in_progress), _("Runs are being made. The page follows them.")),
            ("safety", self.safety is None, _("Work out how far today's order can be trusted.")),
            ("filling", under_way,
             _("A filling is under way: see how far it is, and who is waited for.")),
            ("fill", self.filling is None,
             _("Some orders are not settled: judge the pairs that decide them.") if open_order
             else _("Judge what nobody judged, and see whether the order holds.")),
            ("report", self.report is None and len(self.versions) > 1,
             _("There is a new version of the qrels: see what it does to every ranking.")),
            ("again", bool(self.report and self.report.new), _("Runs came after the last report: work it out again.")),
            ("safety", self.is_old, _("Look how safe the order is by the newest qrels.")),
        ]  # fmt: skip


def benchmark_overview(collection: Collection) -> BenchmarkOverview:
    """From rows and the newest reports: five statements."""
    runs = chosen.runs_of(collection)
    filling = Filling.objects.filter(collection=collection).exclude(state=Filling.State.CANCELLED)
    return BenchmarkOverview(
        runs=runs,
        versions=chosen.versions_of(collection),
        safety=chosen.stored_report(chosen.newest_report(collection, compares=False), runs),
        report=chosen.stored_report(chosen.newest_report(collection, compares=True), runs),
        filling=filling.defer("pairs").order_by("-pk").first(),
    )
