"""What a learning curve says: law, bands, caption, gaps."""

from typing import Any

import numpy as np
import pytest

from charts import Chart
from training.curves.fitting import fit_curve, fit_law
from training.curves.results import CurveResult, MeasuredPoint, compute_result, describe_last, describe_next, draw_curve
from training.jobs.significance import compare_models

LABELS = (500, 1000, 2000, 4000, 8000)


def points_of(*means: float | None, queries: int = 40, noise: float = 0.02, own: float = 0.01) -> list[MeasuredPoint]:
    """Points whose queries differ by a share that all points have, and a little of their own; None: it failed."""
    draw = np.random.default_rng(5)
    shared = draw.normal(0, noise, queries)
    shared -= shared.mean()
    found = []
    for labels, mean in zip(LABELS, means, strict=False):
        jitter = draw.normal(0, own, queries)
        values = {} if mean is None else dict(zip(map(str, range(queries)), mean + shared + jitter, strict=True))
        found.append(MeasuredPoint(labels, labels // 5, "failed" if mean is None else "finished", values))
    return found


def chart_of(result: CurveResult) -> Chart:
    chart = draw_curve(result, "books: curve 1")
    assert chart is not None
    return chart


@pytest.mark.parametrize("c", [0.2, 0.3, 0.5, 0.8, 1.0])
def test_a_known_law_is_found_again(c: float) -> None:
    counts = np.array(LABELS, dtype=float)
    b = 0.3 * 500**c
    values = tuple(tuple(0.8 - b * n**-c + shift for shift in (-0.1, 0.0, 0.1)) for n in counts)
    fit = fit_curve(LABELS, values)
    assert fit is not None and fit.c == pytest.approx(c, abs=0.05)
    assert (fit.a, fit.b) == pytest.approx((0.8, b), rel=0.05)
    gain = b * (8000**-c - 8500**-c)
    assert fit.next.value == pytest.approx(gain, abs=1e-4) and fit.next.low <= gain + 1e-6


def test_with_noise_the_law_is_still_near_and_the_bands_hold_it() -> None:
    truth = [0.8 - 6.0 * n**-0.5 for n in LABELS]
    fit = compute_result(points_of(*truth, queries=200, own=0.005)).fit
    assert fit is not None and fit.c == pytest.approx(0.5, abs=0.05)
    inside = [one.low - 1e-3 <= 0.8 - 6.0 * at**-0.5 <= one.high + 1e-3 for at, one in fit.line]
    assert all(inside)


def test_the_law_stays_within_its_bounds() -> None:
    falling = fit_law(np.array([1.0, 2.0, 4.0]), np.array([0.9, 0.8, 0.7]))
    assert 0 <= falling[0] <= 1 and falling[1] >= 0 and 0.01 <= falling[2] <= 2


def test_two_points_have_no_fit_and_say_so() -> None:
    result = compute_result(points_of(0.5, 0.6))
    assert result.fit is None
    assert describe_next(result) == "No curve is fitted: the fit needs 3 measured points, and there are 2."
    assert [name for name in chart_of(result).header if "fitted" in name] == []


def test_the_last_step_is_compared_as_any_two_models_are() -> None:
    result = compute_result(points_of(0.5, 0.55, 0.6))
    (_, _), (before, _), (after, _) = result.points
    assert before.per_query and after.per_query and result.last
    compared = compare_models(before.per_query, after.per_query)
    assert result.last.difference == pytest.approx(compared["difference"], abs=1e-12)
    assert result.last.p == pytest.approx(compared["p"], abs=5e-3) and result.last.queries == compared["queries"]


@pytest.mark.parametrize(
    ("means", "options", "words"),
    [
        ((0.5, 0.592, 0.6), {}, "The last 1,000 labels bought +"),
        ((0.6, 0.6, 0.6), {"own": 0.05}, "are not shown to help: "),
        ((0.5, 0.7, 0.6), {}, "made it worse: -"),
        ((0.5, 0.6, 0.9), {"queries": 4, "own": 0.0}, "not shown to help"),
        ((0.5, 0.55, 0.6, None), {}, "one of the last two points has no measure"),
    ],
)
def test_the_caption_says_what_the_last_labels_did(means: Any, options: Any, words: str) -> None:
    assert words in describe_last(compute_result(points_of(*means, **options)))


def test_a_failed_point_leaves_a_gap() -> None:
    result = compute_result(points_of(0.5, None, 0.6, 0.62, 0.63))
    chart = chart_of(result)
    first, second = (one.value for _labels, one in result.measured[:2])
    assert [row[1] for row in chart.rows if row[0] in LABELS][:3] == [first, None, second]
    assert chart.csv().count("\n1000,,") == 1
    # The line of the measured points begins after the gap.
    lines = [part.split('"')[0].count(",") for part in chart.svg.split('<polyline class="c s0" points="')[1:]]
    assert lines == [3] and result.fit is not None and len(result.measured) == 4
    assert describe_last(result).startswith("The last 4,000 labels")


def test_the_chart_has_its_numbers_as_a_table_and_csv() -> None:
    result = compute_result(points_of(0.5, 0.56, 0.6))
    chart = chart_of(result)
    for labels, one in result.measured:
        assert any(row[0] == labels and row[1] == one.value and row[2] == one.low for row in chart.rows)
        assert f"\n{labels}," in chart.csv()
    assert describe_last(result) in chart.summary and "books: curve 1" in chart.standalone()


def test_nothing_measured_has_no_chart() -> None:
    assert draw_curve(compute_result(points_of(None, None)), "") is None
