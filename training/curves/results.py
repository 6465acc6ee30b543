"""Results of a learning curve: each point's measure, the gain of the last and of the next labels, and its picture."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.measures.rankings import Paired, compare_runs
from charts import Chart, draw_lines
from training.curves.fitting import LEAST_POINTS, NEXT, CurveFit, Estimate, estimate_means, fit_curve
from training.jobs.held_out import MEASURE
from training.jobs.significance import LEAST_QUERIES


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A point of the curve. `per_query` is empty while its training runs or where it failed (`state` in words)."""

    labels: int
    queries: int | None  # None until its training has planned it.
    state: str = ""
    per_query: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CurveResult:
    """Measured points with their mean over the same dev queries; None where a point has none.

    `last`: the last point against the one before it; None where one of the two is not measured.
    """

    points: tuple[tuple[MeasuredPoint, Estimate | None], ...]
    queries: int
    fit: CurveFit | None
    last: Paired | None

    @property
    def measured(self) -> list[tuple[int, Estimate]]:
        """Labels and measure of the points that have one."""
        return [(point.labels, found) for point, found in self.points if found is not None]


def compute_result(points: Sequence[MeasuredPoint]) -> CurveResult:
    """Measure points on common queries, compare the last two, and fit the law."""
    measured = [point for point in points if point.per_query]
    # Points share queries: easier dev queries of one would look like learning.
    shared = sorted(set.intersection(*(set(point.per_query) for point in measured))) if measured else []
    values = tuple(tuple(point.per_query[query] for query in shared) for point in measured)
    means = iter(estimate_means(values)) if shared else iter(())
    found = tuple((point, next(means, None) if point.per_query else None) for point in points)
    fit = fit_curve(tuple(point.labels for point in measured), values) if shared else None
    pair = points[-2:]
    last = None
    # The last two asked for, not measured: a missing one must not move the comparison.
    if shared and len(pair) == 2 and all(point.per_query for point in pair):
        before, after = ({query: point.per_query[query] for query in shared} for point in pair)
        last = compare_runs(MEASURE, after, before)
    return CurveResult(found, len(shared), fit, last)


def describe_last(result: CurveResult) -> str:
    """Return the caption: what the labels between the last two points gained, in points of nDCG@10 times 100."""
    if len(result.points) < 2 or result.last is None:
        return _("What the last labels bought is not known: one of the last two points has no measure.")
    (before, _one), (after, _other) = result.points[-2:]
    last, labels = result.last, after.labels - before.labels
    gain = _("%(points)s points (%(low)s to %(high)s) of %(measure)s on %(queries)s queries") % {
        "points": f"{100 * last.difference:+.1f}",
        "low": f"{100 * last.low:.1f}",
        "high": f"{100 * last.high:.1f}",
        "measure": MEASURE,
        "queries": f"{last.queries:,}",
    }
    # An interval that holds 0 shows neither gain nor loss.
    if last.queries < LEAST_QUERIES or last.low <= 0 <= last.high:
        words = ngettext(
            "The last %(labels)s label is not shown to help: %(gain)s.",
            "The last %(labels)s labels are not shown to help: %(gain)s.",
            labels,
        )
    elif last.difference > 0:
        words = ngettext(
            "The last %(labels)s label bought %(gain)s.", "The last %(labels)s labels bought %(gain)s.", labels
        )
    else:
        words = ngettext(
            "The last %(labels)s label made it worse: %(gain)s.",
            "The last %(labels)s labels made it worse: %(gain)s.",
            labels,
        )
    return words % {"labels": f"{labels:,}", "gain": gain}


def describe_next(result: CurveResult) -> str:
    """Return what the next labels would buy if the fitted law holds, or why that cannot be said."""
    if result.fit is None:
        return _("No curve is fitted: the fit needs %(least)s measured points, and there are %(there)s.") % {
            "least": LEAST_POINTS,
            "there": len(result.measured),
        }
    figures = {name: f"{100 * value:.1f}" for name, value in asdict(result.fit.next).items()}
    return _(
        "If the fitted curve continues, the next %(labels)s labels buy about %(value)s points (%(low)s to %(high)s)."
    ) % {"labels": f"{NEXT:,}", **figures}


def result_document(result: CurveResult) -> dict[str, Any]:
    """Return the result as JSON holds it."""
    return {
        "measure": MEASURE,
        "queries": result.queries,
        "points": [
            {
                "labels": point.labels,
                "queries": point.queries,
                "state": point.state,
                "measure": asdict(found) if found else None,
            }
            for point, found in result.points
        ],
        "last": asdict(result.last) if result.last else None,
        "fit": asdict(result.fit) if result.fit else None,
        "words": [describe_last(result), describe_next(result)],
    }


def draw_curve(result: CurveResult, source: str) -> Chart | None:
    """Draw each point with its interval, broken where a point is missing, and the fitted law with its band.

    None while no point is measured.
    """
    if not result.measured:
        return None
    measured, fitted = MEASURE, _("fitted a − b n^−c")
    # A point without a measure breaks the line: a line drawn through it would be a guess.
    series = {measured: [(point.labels, one.value if one else None) for point, one in result.points]}
    bands = {measured: [(labels, one.low, one.high) for labels, one in result.measured]}
    if result.fit is not None:
        series[fitted] = [(at, one.value) for at, one in result.fit.line]
        bands[fitted] = [(at, one.low, one.high) for at, one in result.fit.line]
    return draw_lines(
        "curve",
        _("%(measure)s by number of labels") % {"measure": MEASURE},
        series,
        x=_("labels"),
        y=MEASURE,
        bands=bands,
        summary=f"{describe_last(result)} {describe_next(result)}",
        source=source,
    )
