"""What the pages of suites show."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Prefetch

from benchmark.models import Suite, SuiteMember
from benchmark.report.downloads import DownloadTable
from benchmark.report.naming import explain_measure, measure_label
from benchmark.report.page import RANKING
from benchmark.suites import groups
from benchmark.suites.groups import SuiteColumn, SuiteLine
from benchmark.systems.chosen import K
from benchmark.systems.figures import MEASURE
from corpus.models import Collection

MEASURES = (*RANKING, "hole", "judged")


@dataclass(frozen=True)
class ShownSuite:
    """A suite by one measure."""

    measure: str
    label: str
    explanation: str
    measures: list[tuple[str, str]]
    columns: list[SuiteColumn]
    lines: list[SuiteLine]
    table: DownloadTable
    k: int

    @property
    def lettered(self) -> bool:
        """There are systems whose means were tested against each other."""
        return any(line.tests for line in self.lines)

    @property
    def untested(self) -> bool:
        """They could be tested, which takes some seconds."""
        comparable = any(line.mean for line in self.lines) and self.measure in RANKING
        return comparable and not self.lettered

    @property
    def has_change_tests(self) -> bool:
        """And their changes."""
        return any("p" in line.tests for line in self.lines)


def open_to(mine: Iterable[Collection]) -> list[Suite]:
    """Suites all of whose members are among these collections."""
    keys = {one.pk for one in mine}
    members = Prefetch("members", SuiteMember.objects.select_related("collection").order_by("place"))
    found = Suite.objects.order_by("name").prefetch_related(members)
    return [suite for suite in found if {member.collection_id for member in suite.members.all()} <= keys]


def show_suite(suite: Suite, asked: str, *, work: bool = False) -> ShownSuite:
    """By the measure that was asked for, nDCG@k otherwise. `work`: with tests that take longer than a page may."""
    measure = asked if asked in MEASURES else MEASURE
    columns = groups.suite_columns(suite, K)
    lines = groups.suite_lines(columns, measure, work=work)
    return ShownSuite(
        measure=measure,
        label=measure_label(measure, K),
        explanation=explain_measure(measure),
        measures=[(key, measure_label(key, K)) for key in MEASURES],
        columns=columns,
        lines=lines,
        table=groups.suite_table(suite, columns, lines, measure, K),
        k=K,
    )
