"""Subsets of a learning curve: nested, of whole queries, with the same dev split."""

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import BadInput
from tests.training.recipes.test_bundles import row as bundle
from tests.training.recipes.test_bundles import write as write_bundles
from tests.training_sets import write_set
from training.recipes.bundles import read_rtriever_set
from training.recipes.data import read_training_set
from training.recipes.subsets import QueryLines, order_queries, plan_subsets, read_subset, write_subset


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
def test_subsets_are_nested_whole_queries_as_large_as_asked_with_one_dev_split(tmp_path: Path, order: str) -> None:
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


def test_by_time_the_earliest_labels_come_first_and_random_is_seeded(tmp_path: Path) -> None:
    source = write_dated(tmp_path / "set")
    by_time = [one.query_id for one in order_queries(source, "prism", "time", 0)]
    assert by_time == [f"q{number}" for number in range(15, -1, -1)]
    seeded = [[one.query_id for one in order_queries(source, "prism", "random", seed)] for seed in (0, 0, 1)]
    assert seeded[0] == seeded[1] != seeded[2] and sorted(seeded[0]) == sorted(by_time) and seeded[0] != by_time


def test_a_query_is_as_late_as_its_newest_label(tmp_path: Path) -> None:
    source = write_dated(tmp_path / "set")
    late = "2026-11-20T00:00:00.000000Z"
    change_rows(source, lambda row: row | ({"labelled_at": late} if row["doc_id"] == "d15-3" else {}))
    assert [one.query_id for one in order_queries(source, "prism", "time", 0)][-1] == "q15"


def test_a_set_without_times_or_a_dev_split_or_with_a_query_in_both_is_refused(tmp_path: Path) -> None:
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
def test_points_that_make_no_curve_are_refused(tmp_path: Path, points: list[int], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        plan_subsets(order_queries(write_set(tmp_path / "set"), "prism", "random", 0), points)


def test_documents_that_nobody_judged_are_no_labels(tmp_path: Path) -> None:
    source = write_set(tmp_path / "set")
    change_rows(source, lambda row: row | {"assumed": row["doc_id"].endswith("-0")})
    found = order_queries(source, "prism", "random", 0)
    assert {one.labels for one in found} == {5} and {len(one.lines) for one in found} == {6}


def test_a_bundle_has_the_labels_of_its_documents(tmp_path: Path) -> None:
    assumed = [{"doc_id": f"n{number}", "text": f"n{number}", "assumed": number > 0} for number in range(3)]
    rows = [bundle(number, negatives=assumed, labelled_at=f"2026-10-0{number}") for number in range(1, 6)]
    source = write_bundles(tmp_path / "set", rows, (bundle(9),))
    (small, large) = plan_subsets(order_queries(source, "rtriever", "time", 0), [4, 10])
    assert (small["labels"], small["queries"], large["labels"], large["queries"]) == (4, 2, 10, 5)
    target = write_subset(source, tmp_path / "one", "rtriever", order="time", seed=0, points=[4, 10], asked=4)
    assert [one.query_id for one in read_rtriever_set(target).train] == ["q1", "q2"]


def test_a_subset_is_written_once_and_says_of_what_it_is(tmp_path: Path) -> None:
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
def test_every_point_is_at_most_half_a_query_away_and_contains_the_smaller(
    sizes: list[int], data: st.DataObject
) -> None:
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
