"""The result of a learning curve: each point's measure, the gains of the last and the next labels, and the chart."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.measures.rankings import Paired, compare_runs
from charts import Chart, draw_lines
from training.curves.fitting import LEAST_POINTS, NEXT, CurveFit, MeanEstimate, estimate_means, fit_curve
from training.jobs.held_out import MEASURE
from training.jobs.significance import LEAST_QUERIES


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A point of the curve. `per_query` is empty until its training has finished; `state` is the job's, in words."""

    labels: int
    queries: int | None  # None until the training has planned its subset.
    state: str = ""
    per_query: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CurveResult:
    """The points, each with its mean over the shared dev queries, or None if it has no measure.

    `last`: the last point compared with the one before it; None unless both are measured.
    """

    points: tuple[tuple[MeasuredPoint, MeanEstimate | None], ...]
    queries: int
    fit: CurveFit | None
    last: Paired | None

    @property
    def measured(self) -> list[tuple[int, MeanEstimate]]:
        """The labels and estimates of the points that have a measure."""
        return [(point.labels, estimate) for point, estimate in self.points if estimate is not None]


def compute_result(points: Sequence[MeasuredPoint]) -> CurveResult:
    """Measure points on common queries, compare the last two, and fit the law."""
    measured = [point for point in points if point.per_query]
    # On shared queries alone: easier dev queries of one point would look like learning.
    shared = sorted(set.intersection(*(set(point.per_query) for point in measured))) if measured else []
    values = tuple(tuple(point.per_query[query] for query in shared) for point in measured)
    means = iter(estimate_means(values)) if shared else iter(())
    estimates = tuple((point, next(means, None) if point.per_query else None) for point in points)
    fit = fit_curve(tuple(point.labels for point in measured), values) if shared else None
    last_two = points[-2:]
    last = None
    # The last two points of the request, measured or not: a missing one must not move the comparison.
    if shared and len(last_two) == 2 and all(point.per_query for point in last_two):
        before, after = ({query: point.per_query[query] for query in shared} for point in last_two)
        last = compare_runs(MEASURE, after, before)
    return CurveResult(estimates, len(shared), fit, last)


def describe_last(result: CurveResult) -> str:
    """Return the caption about the gain of the labels between the last two points, in points of nDCG@10 times 100."""
    if len(result.points) < 2 or result.last is None:
        return _("What the last labels bought is not known: one of the last two points has no measure.")
    (before, _before_estimate), (after, _after_estimate) = result.points[-2:]
    last, labels = result.last, after.labels - before.labels
    gain = _("%(points)s points (%(low)s to %(high)s) of %(measure)s on %(queries)s queries") % {
        "points": f"{100 * last.difference:+.1f}",
        "low": f"{100 * last.low:.1f}",
        "high": f"{100 * last.high:.1f}",
        "measure": MEASURE,
        "queries": f"{last.queries:,}",
    }
    # An interval that contains 0 shows neither gain nor loss.
    if last.queries < LEAST_QUERIES or last.low <= 0 <= last.high:
        message = ngettext(
            "The last %(labels)s label is not shown to help: %(gain)s.",
            "The last %(labels)s labels are not shown to help: %(gain)s.",
            labels,
        )
    elif last.difference > 0:
        message = ngettext(
            "The last %(labels)s label bought %(gain)s.", "The last %(labels)s labels bought %(gain)s.", labels
        )
    else:
        message = ngettext(
            "The last %(labels)s label made it worse: %(gain)s.",
            "The last %(labels)s labels made it worse: %(gain)s.",
            labels,
        )
    return message % {"labels": f"{labels:,}", "gain": gain}


def describe_next(result: CurveResult) -> str:
    """Return what the next labels would gain if the fitted law continues, or why that cannot be said."""
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
    """Return the result as a JSON document."""
    return {
        "measure": MEASURE,
        "queries": result.queries,
        "points": [
            {
                "labels": point.labels,
                "queries": point.queries,
                "state": point.state,
                "measure": asdict(estimate) if estimate else None,
            }
            for point, estimate in result.points
        ],
        "last": asdict(result.last) if result.last else None,
        "fit": asdict(result.fit) if result.fit else None,
        "words": [describe_last(result), describe_next(result)],
    }


def draw_curve(result: CurveResult, source: str) -> Chart | None:
    """Draw each point with its interval, and the fitted law with its band; None while no point is measured."""
    if not result.measured:
        return None
    measured, fitted = MEASURE, _("fitted a − b n^−c")
    # A point without a measure breaks the line: a line drawn through it would be a guess.
    series = {measured: [(point.labels, estimate.value if estimate else None) for point, estimate in result.points]}
    bands = {measured: [(labels, estimate.low, estimate.high) for labels, estimate in result.measured]}
    if result.fit is not None:
        series[fitted] = [(labels, estimate.value) for labels, estimate in result.fit.line]
        bands[fitted] = [(labels, estimate.low, estimate.high) for labels, estimate in result.fit.line]
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
