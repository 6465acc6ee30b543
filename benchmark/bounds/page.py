"""How safe today's ranking is: a stored report of one version of the qrels, its chart, and what is not settled."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from benchmark.report.downloads import DownloadTable
from benchmark.systems import figures
from benchmark.systems.chosen import StoredReport
from charts import Chart

SHOWN = 60
"""Pairs of systems that are named; the table to save has all."""


@dataclass(frozen=True)
class BoundsLine:
    """A system: the share of its first k that is judged, and what its nDCG@k can become."""

    run: int
    name: str
    judged: float
    value: float
    low: float
    high: float
    open: int
    """Systems against which its order is not settled."""


@dataclass(frozen=True)
class ShownBounds:
    """What the page says."""

    lines: list[BoundsLine]
    unsettled: list[tuple[BoundsLine, BoundsLine]]
    left_out: int
    open: int
    """Orders that are not settled, and `all`: orders there are."""
    all: int
    unjudged: int
    sendable: int
    chart: Chart
    tables: list[DownloadTable]
    k: int


def show_bounds(stored: StoredReport) -> ShownBounds:
    """From the stored result; no statement."""
    found: dict[str, Any] = stored.result["safety"]
    open_of: dict[int, int] = {}
    for pair in found["unsettled"]:
        for run in pair[:2]:
            open_of[run] = open_of.get(run, 0) + 1
    lines = [
        BoundsLine(one["run"], stored.name(one["run"]), one["judged"], one["value"], one["low"], one["high"],
             open_of.get(one["run"], 0))
        for one in found["systems"]
    ]  # fmt: skip
    lines.sort(key=lambda line: (-line.value, line.name))
    by_run = {line.run: line for line in lines}
    pairs = [_leader_first(by_run[one], by_run[other]) for one, other, *_more in found["unsettled"]]
    pairs.sort(key=lambda pair: (pair[0].value - pair[1].value, pair[0].name, pair[1].name))
    return ShownBounds(
        lines=lines,
        unsettled=pairs[:SHOWN],
        left_out=max(0, len(pairs) - SHOWN),
        open=len(pairs),
        all=len(pairs) + int(found["settled"]),
        unjudged=int(found["unjudged"]),
        sendable=len(found.get("first", [])),
        chart=figures.bounds_chart(stored),
        tables=[_systems_table(lines, stored.k), _open_orders_table(pairs, stored.k)],
        k=stored.k,
    )


def _leader_first(one: BoundsLine, other: BoundsLine) -> tuple[BoundsLine, BoundsLine]:
    """The one that is ahead today first."""
    return (one, other) if (one.value, other.name) >= (other.value, one.name) else (other, one)


def _systems_table(lines: list[BoundsLine], k: int) -> DownloadTable:
    header = (_("system"), f"Judged@{k}", f"nDCG@{k}", _("at least"), _("at most"), _("open orders"))
    rows = [(line.name, line.judged, line.value, line.low, line.high, line.open) for line in lines]
    return DownloadTable("safety", _("How safe today's ranking is"), header, tuple(rows))


def _open_orders_table(pairs: list[tuple[BoundsLine, BoundsLine]], k: int) -> DownloadTable:
    header = (_("ahead today"), _("behind today"), _("difference in nDCG@%(k)s") % {"k": k})
    rows = [(one.name, other.name, one.value - other.value) for one, other in pairs]
    return DownloadTable("unsettled", _("Orders that are not settled"), header, tuple(rows), 2)
