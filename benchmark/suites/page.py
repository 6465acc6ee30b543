"""The pages of suites: the suites of who may admin every member, and one suite by a measure."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Prefetch

from benchmark.models import Suite, SuiteMember
from benchmark.report.measures import RANKING
from benchmark.report.naming import measure_label
from benchmark.suites import groups as services
from benchmark.systems.chosen import K
from benchmark.systems.figures import MEASURE
from corpus.models import Collection

MEASURES = (*RANKING, "hole", "judged")


def suites_of(mine: Iterable[Collection]) -> list[Suite]:
    """Return the suites all of whose members are among these collections."""
    keys = {one.pk for one in mine}
    members = Prefetch("members", SuiteMember.objects.select_related("collection").order_by("place"))
    found = Suite.objects.order_by("name").prefetch_related(members)
    return [suite for suite in found if {member.collection_id for member in suite.members.all()} <= keys]


def show_suite(suite: Suite, asked: str, *, work: bool) -> dict[str, Any]:
    """Return a suite by the measure asked for, else nDCG@k. `work`: run the tests that a page cannot wait for, too."""
    measure = asked if asked in MEASURES else MEASURE
    columns = services.suite_columns(suite, K)
    lines = services.suite_lines(columns, measure, work=work)
    lettered = any(line["tests"] for line in lines)
    return {
        "measure": measure,
        "label": measure_label(measure, K),
        "measures": [(key, measure_label(key, K)) for key in MEASURES],
        "columns": columns,
        "lines": lines,
        "table": services.suite_table(suite, columns, lines, measure, K),
        "lettered": lettered,  # means were tested against each other, "has_change_tests": and their changes
        "untested": measure in RANKING and not lettered and any(line["mean"] for line in lines),
        "has_change_tests": any("p" in line["tests"] for line in lines),
    }
