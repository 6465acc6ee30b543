"""Suites: collections that are measured together, each its column, and the unweighted mean."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from benchmark.models import RUN_NAME, Qrels, Report, ReportValues, Suite, SuiteMember
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.report.computing import VERSION
from benchmark.report.measures import RANKING
from benchmark.report.naming import ASPECTS, measure_label
from benchmark.significance.tests import Values, add_tests, join_members, mean_changes
from benchmark.systems.chosen import ready_runs
from charts.downloads import DownloadTable, Figure
from corpus.collections.audit_log import record_act, shell_user
from corpus.errors import BadInput
from corpus.holding import hold_row
from corpus.models import Collection
from jobs.models import JobState

MOST = 100  # Members of a suite.
# Queries of all members times systems that a page tests by itself: about a second on a busy core.
AT_ONCE = 10_000
KEPT_S = 90 * 86_400


@transaction.atomic
def make_suite(*, name: str, collections: Sequence[Collection], title: str = "", by: Any = None) -> Suite:
    """Make a suite, columns as given. `by`: a page's scope; None: a command. BadInput."""
    try:
        RUN_NAME(name)
    except ValidationError as error:
        raise BadInput(_("Suite %(name)s: %(why)s") % {"name": repr(name), "why": error.messages[0]}) from None
    members = list(dict.fromkeys(collections))
    if not 1 <= len(members) <= MOST:
        raise BadInput(_("Choose between 1 and %(most)d collections for a suite.") % {"most": MOST})
    who = by.user.username if by is not None else shell_user()
    try:
        with transaction.atomic():  # a savepoint: the outer transaction survives a name that is taken
            suite = Suite.objects.create(name=name, title=title, made_by=who)
    except IntegrityError:
        raise BadInput(_("A suite named %(name)s already exists. Choose another name.") % {"name": name}) from None
    rows = [SuiteMember(suite=suite, collection=one, place=place) for place, one in enumerate(members, 1)]
    SuiteMember.objects.bulk_create(rows)
    _record_act(by, "suite.made", suite, collections=[one.name for one in members])
    return suite


@transaction.atomic
def delete_suite(suite: Suite, by: Any = None) -> None:
    """Delete a suite; its collections and their reports stay."""
    hold_row(suite)
    _record_act(by, "suite.deleted", suite)
    suite.delete()


def _record_act(by: Any, act: str, suite: Suite, **details: object) -> None:
    where = {} if by is not None else {"shell": shell_user(), "command": "suite"}
    record_act(by, act, None, suite=suite.name, **where, **details)


def find_suite(name: str) -> Suite:
    """Return the suite of this name. Raises BadInput that names those that exist."""
    found = Suite.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(Suite.objects.order_by("name").values_list("name", flat=True)[:20])
        raise BadInput(
            _("There is no suite %(name)s; there are: %(known)s") % {"name": name, "known": known or _("none yet")}
        )
    return found


def collections_of(suite: Suite) -> list[Collection]:
    """The members of a suite, in their order."""
    return [one.collection for one in suite.members.select_related("collection").order_by("place")]


def member_report(collection: Collection, k: int = reports.K) -> Report | None:
    """The report that speaks for a member: its newest that is ready at k, of two versions where there is one."""
    ready = Report.objects.filter(collection=collection, state=JobState.READY, options__k=k).order_by("-pk")
    # Measures that cut at another depth than those of the other members would share their column.
    ready = ready.filter(Q(options__aspects_k__isnull=True) | Q(options__aspects_k=k))
    # A report of two versions says what filling did; one of a single version only how safe its order is.
    return ready.exclude(after=F("before")).first() or ready.first()


def ensure_report(collection: Collection, k: int = reports.K, by: str = "") -> Report | None:
    """A report of all ready runs on the original qrels and the newest filled ones; None: there is no ready run."""
    runs = ready_runs(collection, k)
    if not runs:
        return None
    before = versions.original_version(collection, by)
    filled = versions.latest_version(collection, Qrels.Kind.FILLED)
    return reports.ensure_report(collection, before, filled or before, runs, k, by)


# A member of a suite with the report that speaks for it, if there is one.
SuiteColumn = tuple[Collection, Report | None]


def suite_columns(suite: Suite, k: int = reports.K) -> list[SuiteColumn]:
    """The members with the reports that speak for them. Reads only."""
    return [(collection, member_report(collection, k)) for collection in collections_of(suite)]


def _systems_by_member(found: Sequence[SuiteColumn]) -> list[dict[str, Mapping[str, Any]]]:
    """Return for each member its report's systems by name; nothing without a report."""
    return [
        {one["name"]: one for one in (report.result or {})["systems"]} if report else {}
        for _collection, report in found
    ]


def suite_lines(found: Sequence[SuiteColumn], key: str, *, work: bool = True) -> list[dict[str, Any]]:
    """Return the systems by their mean, the best first, those without one last.

    `work`: as `suite_tests` has it. `mean`: before, after and change, unweighted; None where a
    member is missing. `tests`: of the mean, its change's low, high, p and p_holm, letters_before
    and letters_after; empty where it is blank, and for measures that order no systems.
    """
    by_member = _systems_by_member(found)
    names = sorted({name for systems in by_member for name in systems})
    rows = []
    tested = suite_tests(found, key, work=work)
    for name in names:
        values = [systems[name]["values"].get(key) if name in systems else None for systems in by_member]
        mean, tests = member_mean(values), tested.get(name, {})
        rows.append({"system": name, "values": values, "mean": mean, "tests": tests})
    return sorted(rows, key=lambda row: (row["mean"] is None, -((row["mean"] or {}).get("after") or 0), row["system"]))


def suite_tests(found: Sequence[SuiteColumn], key: str, *, work: bool = True) -> dict[str, dict[str, Any]]:
    """Return, for systems that every member has, paired tests over all members' queries; members count alike.

    They are kept once worked out, since a report that is ready never changes. Without `work` many
    that are not kept yet are left out: a page cannot wait for them.
    """
    by_member = _systems_by_member(found)
    names = sorted(set.intersection(*(set(systems) for systems in by_member))) if by_member else []
    names = [name for name in names if all(key in systems[name]["values"] for systems in by_member)]
    if not names or key not in (*RANKING, *ASPECTS):
        return {}
    members = [
        (report, [systems[name]["run"] for name in names])
        for (_collection, report), systems in zip(found, by_member, strict=True)
        if report
    ]
    # A report that is made again has another key or another end, so what is kept is never of an older one.
    asked = repr((VERSION, key, [(report.key, report.ended_at, runs) for report, runs in members]))
    kept = f"suite-tests:{sha256(asked.encode()).hexdigest()}"
    if (known := cache.get(kept)) is None:
        queries = sum(len(report.result["queries"]) for report, _runs in members if report.result)
        if not work and queries * len(names) > AT_ONCE:
            return {}
        values = []
        for report, runs in members:
            rows = {row.run_id: row for row in ReportValues.objects.filter(report=report, measure=key, run__in=runs)}
            before = np.array([rows[run].before for run in runs], float)
            after = np.array([rows[run].after for run in runs], float)
            values.append(Values(before if before.size else None, after))
        joined = join_members(values)
        known = mean_changes(joined)
        add_tests({key: known}, {key: joined}, names, reports.SEED, [one.after.shape[1] for one in values])
        cache.set(kept, known, KEPT_S)
    return dict(zip(names, known, strict=True))


def member_mean(values: Sequence[Mapping[str, Any] | None]) -> dict[str, float | None] | None:
    """The unweighted mean of the members, or None where one is missing."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None  # a mean over fewer members would not compare with the other systems'
    found: dict[str, float | None] = {}
    for name in ("before", "after", "change"):
        given = [value[name] for value in known]
        found[name] = None if None in given else sum(given) / len(given)
    return found


def suite_table(
    suite: Suite, found: Sequence[SuiteColumn], shown: Sequence[Mapping[str, Any]], key: str, k: int = reports.K
) -> DownloadTable:
    """Return the table of systems by members: values after filling with their change, and the mean with its tests."""
    header = (_("system"), *(collection.name for collection, _report in found), _("mean"))
    rows = [
        (row["system"], *map(_cell_figure, row["values"]), _cell_figure(row["mean"], row["tests"])) for row in shown
    ]
    best = frozenset() if key in ("hole", "unjudged") else frozenset(range(1, len(header)))
    if any("p" in row["tests"] for row in shown):
        header += (_("95% from"), _("95% to"), "p", _("p (Holm)"))
        fields = ("low", "high", "p", "p_holm")
        rows = [(*cells, *map(row["tests"].get, fields)) for cells, row in zip(rows, shown, strict=True)]
    title = _("%(suite)s: %(measure)s") % {"suite": suite.title or suite.name, "measure": measure_label(key, k)}
    return DownloadTable(f"{suite.name}-{key}", title, header, tuple(rows), best=best)


def _cell_figure(value: Mapping[str, Any] | None, tested: Mapping[str, Any] = MappingProxyType({})) -> Figure | None:
    return Figure(value["after"], value["change"], tested.get("letters_after", "")) if value is not None else None
