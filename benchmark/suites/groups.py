"""Suites: collections measured together, a column each, and their unweighted mean."""

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

from benchmark.measures.arrays import RANKING
from benchmark.models import RUN_NAME, Qrels, Report, ReportValues, Suite, SuiteMember
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.report.computing import VERSION
from benchmark.report.naming import ASPECTS, measure_label
from benchmark.report.systems.chosen import ready_runs
from benchmark.report.weighting import counts_mark, reports_by, weights_in
from benchmark.significance.pairwise import QueryMean, mean_intervals
from benchmark.significance.tests import Values, add_tests, join_members, mean_changes, member_weights
from charts.downloads import DownloadTable, Figure
from corpus.collections.audit_log import record_act, shell_user
from corpus.errors import BadInput
from corpus.holding import hold_row
from corpus.models import Collection
from jobs.models import JobState

MOST = 100  # Members of a suite.
# Queries of all members times systems that are tested while a page waits: about a second on a busy core.
AT_ONCE = 10_000
CACHED_S = 90 * 86_400


@transaction.atomic
def make_suite(*, name: str, collections: Sequence[Collection], title: str = "", by: Any = None) -> Suite:
    """Make a suite of these collections; `by`: the scope of a page, None in a command. Raises BadInput."""
    try:
        RUN_NAME(name)
    except ValidationError as error:
        raise BadInput(_("Suite %(name)s: %(why)s") % {"name": repr(name), "why": error.messages[0]}) from None
    members = list(dict.fromkeys(collections))
    if not 1 <= len(members) <= MOST:
        raise BadInput(_("Choose between 1 and %(most)d collections for a suite.") % {"most": MOST})
    maker = by.user.username if by is not None else shell_user()
    try:
        # In a savepoint, so that the outer transaction survives a name that is in use.
        with transaction.atomic():
            suite = Suite.objects.create(name=name, title=title, made_by=maker)
    except IntegrityError:
        raise BadInput(_("A suite named %(name)s already exists. Choose another name.") % {"name": name}) from None
    rows = [
        SuiteMember(suite=suite, collection=collection, place=position)
        for position, collection in enumerate(members, 1)
    ]
    SuiteMember.objects.bulk_create(rows)
    _record_act(by, "suite.made", suite, collections=[collection.name for collection in members])
    return suite


@transaction.atomic
def delete_suite(suite: Suite, by: Any = None) -> None:
    """Delete a suite; its collections and their reports stay."""
    hold_row(suite)
    _record_act(by, "suite.deleted", suite)
    suite.delete()


def _record_act(by: Any, act: str, suite: Suite, **details: object) -> None:
    origin = {} if by is not None else {"shell": shell_user(), "command": "suite"}
    record_act(by, act, None, suite=suite.name, **origin, **details)


def collections_of(suite: Suite) -> list[Collection]:
    """Return the collections of a suite, in their order."""
    return [collection.collection for collection in suite.members.select_related("collection").order_by("place")]


def member_report(collection: Collection, k: int = reports.K, weights: str = "") -> Report | None:
    """Return the report that represents a member: its newest one at depth k, preferably of two versions.

    `weights`: COUNTS for means weighted by the collection's counts as they are now, "" for plain ones.
    """
    reports = Report.objects.filter(collection=collection, state=JobState.READY, options__k=k).order_by("-pk")
    # Aspect measures at another depth would be compared with those of the other members.
    reports = reports.filter(Q(options__aspects_k__isnull=True) | Q(options__aspects_k=k))
    # The mean of a suite is over means of one sort. Tests weigh the queries again, so that counts must be those of now.
    reports = reports_by(weights, reports)
    reports = reports.filter(options__counts=counts_mark(collection)) if weights else reports
    # A report of two versions shows the effect of filling.
    return reports.exclude(after=F("before")).first() or reports.first()


def ensure_report(collection: Collection, k: int = reports.K, by: str = "", weights: str = "") -> Report | None:
    """Ensure a report of all ready runs on the original and the newest filled qrels; None without a ready run.

    Raises BadOption for `weights` (COUNTS) where no query has a count.
    """
    runs = ready_runs(collection, k)
    if not runs:
        return None
    before = versions.original_version(collection, by)
    filled = versions.latest_version(collection, Qrels.Kind.FILLED)
    return reports.ensure_report(collection, before, filled or before, runs, k, by, weights=weights)


# A member of a suite with the report that represents it, if any.
SuiteColumn = tuple[Collection, Report | None]


def suite_columns(suite: Suite, k: int = reports.K, weights: str = "") -> list[SuiteColumn]:
    """Return the members with the reports that represent them. `weights`: as for `member_report`."""
    return [(collection, member_report(collection, k, weights)) for collection in collections_of(suite)]


def _systems_by_member(columns: Sequence[SuiteColumn]) -> list[dict[str, Mapping[str, Any]]]:
    """Return the systems of each member's report by name; empty without a report."""
    return [
        {system["name"]: system for system in (report.result or {})["systems"]} if report else {}
        for _collection, report in columns
    ]


def suite_lines(columns: Sequence[SuiteColumn], key: str, *, work: bool = True) -> list[dict[str, Any]]:
    """Return the systems by their mean, the best first, those without a mean last.

    `work`: see `suite_tests`. `mean`: before, after and change, unweighted; None if a member has no
    value. `tests`: as `suite_tests` returns them; empty without a mean, and for measures that do not
    rank systems. `cells`: each value with its QueryMean; `estimate`: that of the mean.
    """
    by_member = _systems_by_member(columns)
    names = sorted({name for systems in by_member for name in systems})
    rows = []
    tests_by_system = suite_tests(columns, key, work=work)
    sizes = [_count_queries(report, key) for _collection, report in columns]
    for name in names:
        values = [systems[name]["values"].get(key) if name in systems else None for systems in by_member]
        mean, tests = member_mean(values), tests_by_system.get(name, {})
        intervals = tests.get("intervals", [(None, None)] * (len(values) + 1))
        *estimates, estimate = (
            QueryMean(value["after"], low, high, size) if value else None
            for value, (low, high), size in zip([*values, mean], intervals, [*sizes, sum(sizes)], strict=True)
        )
        cells = list(zip(values, estimates, strict=True))
        row = {"system": name, "values": values, "cells": cells, "mean": mean, "estimate": estimate, "tests": tests}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["mean"] is None, -((row["mean"] or {}).get("after") or 0), row["system"]))


def _count_queries(report: Report | None, key: str) -> int:
    """Return the number of queries over which a report has the mean of a measure."""
    result = (report.result if report else None) or {}
    return len((result.get("aspects") or {}).get("queries", ()) if key in ASPECTS else result.get("queries", ()))


def suite_tests(columns: Sequence[SuiteColumn], key: str, *, work: bool = True) -> dict[str, dict[str, Any]]:
    """Return paired tests over all members' queries, for systems of every member; members have equal weight.

    By system: low, high, p and p_holm of the mean's change, letters_before and letters_after, and `intervals`,
    the 95% interval of the mean in each member, then of the mean over members.
    The tests are cached, since a finished report never changes. Without `work`, large tests that
    are not cached yet are left out, because a page cannot wait for them.
    """
    by_member = _systems_by_member(columns)
    names = sorted(set.intersection(*(set(systems) for systems in by_member))) if by_member else []
    names = [name for name in names if all(key in systems[name]["values"] for systems in by_member)]
    if not names or key not in (*RANKING, *ASPECTS):
        return {}
    members = [
        (report, [systems[name]["run"] for name in names])
        for (_collection, report), systems in zip(columns, by_member, strict=True)
        if report
    ]
    # A report that is made again has another key or end time, so that the cache is never out of date.
    cache_text = repr((VERSION, "intervals", key, [(report.key, report.ended_at, runs) for report, runs in members]))
    cache_key = f"suite-tests:{sha256(cache_text.encode()).hexdigest()}"
    if (test_rows := cache.get(cache_key)) is None:
        queries = sum(len(report.result["queries"]) for report, _runs in members if report.result)
        if not work and queries * len(names) > AT_ONCE:
            return {}
        values, weights = [], []
        for report, runs in members:
            rows = {row.run_id: row for row in ReportValues.objects.filter(report=report, measure=key, run__in=runs)}
            before = np.array([rows[run].before for run in runs], float)
            after = np.array([rows[run].after for run in runs], float)
            member_values = Values(before if before.size else None, after)
            result: dict[str, Any] = report.result or {}
            by_count = weights_in(report, (result["aspects"] if key in ASPECTS else result)["queries"])
            values.append(member_values if by_count is None else member_values.times(by_count))
            weights.append(np.ones(after.shape[1]) if by_count is None else by_count)
        joined = join_members(values)
        test_rows = mean_changes(joined)
        shares = member_weights(values) * np.concatenate(weights)
        add_tests({key: test_rows}, {key: joined}, names, reports.SEED, shares)
        spans = [
            mean_intervals({key: member.after}, reports.SEED, by_count)[key]
            for member, by_count in zip(values, weights, strict=True)
        ]
        spans.append(mean_intervals({key: joined.after}, reports.SEED, shares)[key])
        for row, *intervals in zip(test_rows, *spans, strict=True):
            row["intervals"] = intervals
        cache.set(cache_key, test_rows, CACHED_S)
    return dict(zip(names, test_rows, strict=True))


def member_mean(values: Sequence[Mapping[str, Any] | None]) -> dict[str, float | None] | None:
    """Return the unweighted mean of the members; None if one has no value."""
    present = [value for value in values if value is not None]
    # A mean over fewer members could not be compared with those of other systems.
    if not present or len(present) < len(values):
        return None
    means: dict[str, float | None] = {}
    for name in ("before", "after", "change"):
        numbers = [value[name] for value in present]
        means[name] = None if None in numbers else sum(numbers) / len(numbers)
    return means


def label_of(columns: Sequence[SuiteColumn], key: str, k: int = reports.K) -> str:
    """Return the name of a measure in these columns, which says where its means are weighted."""
    is_weighted = any(report is not None and report.options.get("weights") for _collection, report in columns)
    return measure_label(key, k, is_weighted=is_weighted)


def suite_table(
    suite: Suite, columns: Sequence[SuiteColumn], lines: Sequence[Mapping[str, Any]], key: str, k: int = reports.K
) -> DownloadTable:
    """Return the table of systems by members: values after filling with their change, and the mean with its tests."""
    header = (_("system"), *(collection.name for collection, _report in columns), _("mean"))
    rows = [
        (line["system"], *map(_cell_figure, line["values"]), _cell_figure(line["mean"], line["tests"]))
        for line in lines
    ]
    best = frozenset() if key in ("hole", "unjudged") else frozenset(range(1, len(header)))
    if any("p" in line["tests"] for line in lines):
        header += (_("95% from"), _("95% to"), "p", _("p (Holm)"))
        fields = ("low", "high", "p", "p_holm")
        rows = [(*cells, *map(line["tests"].get, fields)) for cells, line in zip(rows, lines, strict=True)]
    title = _("%(suite)s: %(measure)s") % {"suite": suite.title or suite.name, "measure": label_of(columns, key, k)}
    return DownloadTable(f"{suite.name}-{key}", title, header, tuple(rows), best=best)


def _cell_figure(value: Mapping[str, Any] | None, tests: Mapping[str, Any] = MappingProxyType({})) -> Figure | None:
    return Figure(value["after"], value["change"], tests.get("letters_after", "")) if value is not None else None
