"""The picture of a learning curve."""

from django.utils.translation import gettext as _

from charts import Chart, draw_lines
from training.curves.results import CurveResult, describe_last, describe_next
from training.jobs.held_out import MEASURE


def draw_curve(result: CurveResult, source: str) -> Chart | None:
    """Draw each point with its interval, broken where a point is missing, and the fitted law with its band.

    None while no point is measured.
    """
    if not result.measured:
        return None
    measured, fitted = MEASURE, _("fitted a − b n^−c")
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
