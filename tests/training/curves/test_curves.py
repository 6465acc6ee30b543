"""What a learning curve says: law, bands, caption, gaps; its subsets: nested, of whole queries, with one dev split."""

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from charts import Chart
from corpus.errors import BadInput
from tests.training.recipes.test_bundles import row as bundle
from tests.training.recipes.test_bundles import write as write_bundles
from tests.training_sets import write_set
from training.curves.fitting import fit_curve, fit_law
from training.curves.results import CurveResult, MeasuredPoint, compute_result, describe_last, describe_next, draw_curve
from training.jobs.significance import compare_models
from training.recipes.bundles import read_rtriever_set
from training.recipes.data import read_training_set
from training.recipes.subsets import QueryLines, order_queries, plan_subsets, read_subset, write_subset

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
def test_a_known_law_is_found_again(c):
    counts = np.array(LABELS, dtype=float)
    b = 0.3 * 500**c
    values = tuple(tuple(0.8 - b * n**-c + shift for shift in (-0.1, 0.0, 0.1)) for n in counts)
    fit = fit_curve(LABELS, values)
    assert fit is not None and fit.c == pytest.approx(c, abs=0.05)
    assert (fit.a, fit.b) == pytest.approx((0.8, b), rel=0.05)
    gain = b * (8000**-c - 8500**-c)
    assert fit.next.value == pytest.approx(gain, abs=1e-4) and fit.next.low <= gain + 1e-6


def test_with_noise_the_law_is_still_near_its_bands_hold_it_and_it_stays_within_its_bounds():
    truth = [0.8 - 6.0 * n**-0.5 for n in LABELS]
    fit = compute_result(points_of(*truth, queries=200, own=0.005)).fit
    assert fit is not None and fit.c == pytest.approx(0.5, abs=0.05)
    inside = [one.low - 1e-3 <= 0.8 - 6.0 * at**-0.5 <= one.high + 1e-3 for at, one in fit.line]
    assert all(inside)
    falling = fit_law(np.array([1.0, 2.0, 4.0]), np.array([0.9, 0.8, 0.7]))
    assert 0 <= falling[0] <= 1 and falling[1] >= 0 and 0.01 <= falling[2] <= 2


def test_two_points_have_no_fit_and_nothing_measured_no_chart():
    result = compute_result(points_of(0.5, 0.6))
    assert result.fit is None
    assert describe_next(result) == "No curve is fitted: the fit needs 3 measured points, and there are 2."
    assert [name for name in chart_of(result).header if "fitted" in name] == []
    assert draw_curve(compute_result(points_of(None, None)), "") is None


def test_the_last_step_is_compared_as_any_two_models_are_and_the_chart_has_its_numbers():
    result = compute_result(points_of(0.5, 0.55, 0.6))
    (_, _), (before, _), (after, _) = result.points
    assert before.per_query and after.per_query and result.last
    compared = compare_models(before.per_query, after.per_query)
    assert result.last.difference == pytest.approx(compared["difference"], abs=1e-12)
    assert result.last.p == pytest.approx(compared["p"], abs=5e-3) and result.last.queries == compared["queries"]
    result = compute_result(points_of(0.5, 0.56, 0.6))
    chart = chart_of(result)
    for labels, one in result.measured:
        assert any(row[0] == labels and row[1] == one.value and row[2] == one.low for row in chart.rows)
        assert f"\n{labels}," in chart.csv()
    assert describe_last(result) in chart.summary and "books: curve 1" in chart.standalone()


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
def test_the_caption_says_what_the_last_labels_did(means, options, words):
    assert words in describe_last(compute_result(points_of(*means, **options)))


def test_a_failed_point_leaves_a_gap():
    result = compute_result(points_of(0.5, None, 0.6, 0.62, 0.63))
    chart = chart_of(result)
    first, second = (one.value for _labels, one in result.measured[:2])
    assert [row[1] for row in chart.rows if row[0] in LABELS][:3] == [first, None, second]
    assert chart.csv().count("\n1000,,") == 1
    # The line of the measured points begins after the gap.
    lines = [part.split('"')[0].count(",") for part in chart.svg.split('<polyline class="c s0" points="')[1:]]
    assert lines == [3] and result.fit is not None and len(result.measured) == 4
    assert describe_last(result).startswith("The last 4,000 labels")


def change_rows(folder: Path, change: Any) -> Path:
    """Write every row of train anew; the manifest follows."""
    path = folder / "train.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][0]["sha256"] = sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def write_dated(folder: Path) -> Path:
    """16 queries of 6 labels in train; the query with the largest number was labelled first."""

    def date(row: dict[str, Any]) -> dict[str, Any]:
        day, place = 30 - int(row["query_id"][1:]), int(row["doc_id"].rpartition("-")[2])
        return row | {"labelled_at": f"2026-10-{day:02}T09:{place:02}:00.000000Z"}

    return change_rows(write_set(folder), date)


def write_points(source: Path, target: Path, order: str, points: list[int], seed: int = 0) -> list[Path]:
    return [
        write_subset(source, target / str(asked), "prism", order=order, seed=seed, points=points, asked=asked)
        for asked in points
    ]


@pytest.mark.parametrize("order", ["time", "random"])
def test_subsets_are_nested_whole_queries_as_large_as_asked_with_one_dev_split(tmp_path, order):
    source = write_dated(tmp_path / "set")
    whole = read_training_set(source)
    points = [10, 30, 62, 96]
    found = [read_training_set(folder) for folder in write_points(source, tmp_path, order, points)]
    rows = [{(row.query_id, row.doc_id) for row in one.train} for one in found]
    assert all(small < large for small, large in pairwise(rows))
    for one, asked in zip(found, points, strict=True):
        queries = {row.query_id for row in one.train}
        assert one.train == [row for row in whole.train if row.query_id in queries]
        assert abs(len(one.train) - asked) <= 6
        assert one.dev == whole.dev and not queries & {row.query_id for row in one.dev}
    assert [len(one.train) for one in found] == [12, 30, 60, 96]


def test_by_time_the_earliest_labels_come_first_by_the_newest_of_a_query_and_random_is_seeded(tmp_path):
    source = write_dated(tmp_path / "set")
    by_time = [one.query_id for one in order_queries(source, "prism", "time", 0)]
    assert by_time == [f"q{number}" for number in range(15, -1, -1)]
    seeded = [[one.query_id for one in order_queries(source, "prism", "random", seed)] for seed in (0, 0, 1)]
    assert seeded[0] == seeded[1] != seeded[2] and sorted(seeded[0]) == sorted(by_time) and seeded[0] != by_time
    late = "2026-11-20T00:00:00.000000Z"
    change_rows(source, lambda row: row | ({"labelled_at": late} if row["doc_id"] == "d15-3" else {}))
    assert [one.query_id for one in order_queries(source, "prism", "time", 0)][-1] == "q15"


def test_a_set_without_times_or_a_dev_split_or_with_a_query_in_both_is_refused(tmp_path):
    source = write_set(tmp_path / "set")
    with pytest.raises(BadInput, match=r"q0 .* labelled: .* order random"):
        order_queries(source, "prism", "time", 0)
    dev = (source / "dev.jsonl").read_text()
    (source / "dev.jsonl").write_text(dev + (source / "train.jsonl").read_text().splitlines()[0] + "\n")
    with pytest.raises(BadInput, match=r"q0 .* train .* dev"):
        order_queries(source, "prism", "random", 0)
    (source / "dev.jsonl").unlink()
    with pytest.raises(BadInput, match="no dev split"):
        order_queries(source, "prism", "random", 0)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([50, 4000], "Point 4,000 is more than the 96 labels of the training set"),
        ([50], "Name two points or more"),
        ([60, 30], "from the smallest to the largest"),
        ([0, 30], "Name two points or more"),
        ([30, 31], "Point 31 has the same queries as the point before it"),
    ],
)
def test_points_that_make_no_curve_are_refused(tmp_path, points, words):
    with pytest.raises(BadInput, match=words):
        plan_subsets(order_queries(write_set(tmp_path / "set"), "prism", "random", 0), points)


def test_documents_that_nobody_judged_are_no_labels(tmp_path):
    source = write_set(tmp_path / "set")
    change_rows(source, lambda row: row | {"assumed": row["doc_id"].endswith("-0")})
    found = order_queries(source, "prism", "random", 0)
    assert {one.labels for one in found} == {5} and {len(one.lines) for one in found} == {6}


def test_a_bundle_has_the_labels_of_its_documents(tmp_path):
    assumed = [{"doc_id": f"n{number}", "text": f"n{number}", "assumed": number > 0} for number in range(3)]
    rows = [bundle(number, negatives=assumed, labelled_at=f"2026-10-0{number}") for number in range(1, 6)]
    source = write_bundles(tmp_path / "set", rows, (bundle(9),))
    (small, large) = plan_subsets(order_queries(source, "rtriever", "time", 0), [4, 10])
    assert (small["labels"], small["queries"], large["labels"], large["queries"]) == (4, 2, 10, 5)
    target = write_subset(source, tmp_path / "one", "rtriever", order="time", seed=0, points=[4, 10], asked=4)
    assert [one.query_id for one in read_rtriever_set(target).train] == ["q1", "q2"]


def test_a_subset_is_written_once_and_says_of_what_it_is(tmp_path):
    source = write_dated(tmp_path / "set")
    options: dict[str, Any] = {"order": "time", "seed": 3, "points": [23, 90], "asked": 23}
    target = write_subset(source, tmp_path / "one", "prism", **options)
    files = {path.name: path.stat().st_mtime_ns for path in target.iterdir()}
    write_subset(source, target, "prism", **options)
    assert {path.name: path.stat().st_mtime_ns for path in target.iterdir()} == files
    manifest = json.loads((target / "manifest.json").read_text())
    of = sha256((source / "manifest.json").read_bytes()).hexdigest()
    said = {"order": "time", "seed": 3, "asked": 23, "labels": 24, "queries": 4}
    assert manifest["subset"] == {"of": of, **said} and manifest["files"][0]["rows"] == 24
    assert read_subset(target) == {"of": of, **said} and read_subset(tmp_path) is None


@given(st.lists(st.integers(1, 9), min_size=3, max_size=30), st.data())
def test_every_point_is_at_most_half_a_query_away_and_contains_the_smaller(sizes, data):
    queries = [QueryLines(f"q{place}", labels=size) for place, size in enumerate(sizes)]
    points = sorted(data.draw(st.sets(st.integers(1, sum(sizes)), min_size=2, max_size=6)))
    try:
        found = plan_subsets(queries, points)
    except BadInput as error:
        assert "same queries" in str(error)
        return
    for subset, asked in zip(found, points, strict=True):
        assert subset["labels"] == sum(sizes[: subset["queries"]])
        assert asked >= sizes[0] or subset["queries"] == 1
        assert abs(subset["labels"] - asked) <= max(sizes)
    assert [one["queries"] for one in found] == sorted({one["queries"] for one in found})
