"""Nested subsets of a training set by whole queries, each written as an export (pure).

Queries are put in one order, and a subset is its first so many queries: every larger subset contains the smaller
ones. All subsets share the same dev split.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from corpus.errors import BadInput
from training.recipes.data import open_manifest, read_manifest, read_rows
from training.recipes.job_folder import write_folder

TIME, RANDOM = "time", "random"
NO_DEV = gettext_noop("%(folder)s has no dev split to measure on: export with a smaller split")


@dataclass(slots=True)
class QueryLines:
    """The lines of one query in a split, and the number of labels in them."""

    query_id: str
    lines: list[int] = field(default_factory=list)  # Their numbers, from 1.
    labels: int = 0  # Judged documents; those that are only assumed to be negatives do not count.
    labelled_at: str = ""  # The time of its newest label, in UTC; empty if no line gives one.


def order_queries(folder: Path, export_format: str, order: str, seed: int) -> list[QueryLines]:
    """Return the training queries by the time of their newest label or in seeded random order. Raises BadInput."""
    train, dev = (_group_lines(folder / f"{split}.jsonl", export_format) for split in ("train", "dev"))
    if not dev:
        raise BadInput(_(NO_DEV) % {"folder": folder.name})
    if shared := sorted(train.keys() & dev.keys()):
        raise BadInput(_("Query %(query)s is in train and in dev: export the set again") % {"query": shared[0]})
    # By hash, so that the order of the queries does not depend on which others are in the set.
    if order == RANDOM:
        return sorted(train.values(), key=lambda query: sha256(f"{seed}\0{query.query_id}".encode()).digest())
    if without := [query.query_id for query in train.values() if not query.labelled_at]:
        raise BadInput(
            _("Query %(first)s does not say when it was labelled: export the set again, or use the order random")
            % {"first": without[0]}
        )
    return sorted(train.values(), key=lambda query: (query.labelled_at, query.query_id))


def _group_lines(path: Path, export_format: str) -> dict[str, QueryLines]:
    """Return the lines of a split by query, none if the file is missing. Raises BadInput with file and line."""
    queries: dict[str, QueryLines] = {}

    def add(row: Mapping[str, Any], number: int) -> None:
        # A row without an id counts as a separate query, as it does in training.
        query_id = str(row.get("query_id") or f"line-{number}")
        query = queries.setdefault(query_id, QueryLines(query_id))
        query.lines.append(number)
        # A row has one document, or positives and negatives: all documents of its query.
        query.labels += len(row.get("positives", ()))
        documents = row["negatives"] if "positives" in row else [row]
        query.labels += sum(not document.get("assumed") for document in documents)
        query.labelled_at = max(query.labelled_at, str(row.get("labelled_at") or ""))

    if path.exists():
        list(read_rows(path, add, export_format))
    return queries


def check_points(points: Sequence[int]) -> None:
    """Raise BadInput for fewer than two points, or for points that do not increase."""
    if len(points) < 2 or sorted(set(points)) != list(points) or points[0] < 1:
        raise BadInput(_("Name two points or more, from the smallest to the largest, such as 500,1000,2000"))


def check_quickly(folder: Path, export_format: str, order: str, points: Sequence[int]) -> None:
    """Raise BadInput for errors that the manifest and the first row show, without reading the whole set."""
    check_points(points)
    manifest, _raw = open_manifest(folder, export_format)
    dev, train = folder / "dev.jsonl", folder / "train.jsonl"
    if not dev.exists() or not dev.stat().st_size:
        raise BadInput(_(NO_DEV) % {"folder": folder.name})
    row_counts = {file["name"]: file["rows"] for file in manifest.get("files", []) if "rows" in file}
    rows = row_counts.get(train.name)
    first: Any = {}
    # A first line that is no row is reported where the whole file is read.
    with suppress(OSError, ValueError), train.open(encoding="utf-8") as file:
        first = json.loads(file.readline())
    first = first if isinstance(first, dict) else {}
    if "positives" not in first and rows is not None and points[-1] > rows:
        raise BadInput(
            _("Point %(asked)s is more than the %(there)s rows of the training set")
            % {"asked": f"{points[-1]:,}", "there": f"{rows:,}"}
        )
    if order == TIME and not first.get("labelled_at"):
        raise BadInput(
            _("The training set does not say when it was labelled: export it again, or use the order random")
        )


def plan_subsets(queries: Sequence[QueryLines], points: Sequence[int]) -> list[dict[str, int]]:
    """Return for each point how many of the first queries have the number of labels nearest to it.

    `asked` is the point, `queries` the number of queries, `labels` the number of their labels. Raises BadInput.
    """
    check_points(points)
    sums = list(accumulate(query.labels for query in queries))
    if points[-1] > sums[-1]:
        raise BadInput(
            ngettext(
                "Point %(asked)s is more than the %(there)s label of the training set",
                "Point %(asked)s is more than the %(there)s labels of the training set",
                sums[-1],
            )
            % {"asked": f"{points[-1]:,}", "there": f"{sums[-1]:,}"}
        )
    # Whole queries seldom add up to the exact number: take the nearest from below or above, the smaller of two.
    ends = [min(range(len(sums)), key=lambda index: (abs(sums[index] - point), index)) for point in points]
    if same := [point for point, before, end in zip(points[1:], ends, ends[1:], strict=False) if before == end]:
        raise BadInput(
            _("Point %(asked)s has the same queries as the point before it: take points further apart")
            % {"asked": f"{same[0]:,}"}
        )
    return [{"asked": point, "labels": sums[end], "queries": end + 1} for point, end in zip(points, ends, strict=True)]


def write_subset(
    source: Path, target: Path, export_format: str, *, order: str, seed: int, points: Sequence[int], asked: int
) -> Path:
    """Write an export with the queries of one point (`asked`) and the whole dev split, unless it exists.

    Return its folder. Raises BadInput.
    """
    if (target / "manifest.json").exists():
        return target
    manifest, digest = read_manifest(source, export_format)
    queries = order_queries(source, export_format, order, seed)
    subset = next(plan for plan in plan_subsets(queries, points) if plan["asked"] == asked)
    line_numbers = sorted(line for query in queries[: subset["queries"]] for line in query.lines)
    # Read as bytes: a subset's lines are byte for byte those of the export.
    lines = (source / "train.jsonl").read_bytes().split(b"\n")
    contents = {
        "train.jsonl": b"".join(lines[number - 1] + b"\n" for number in line_numbers),
        "dev.jsonl": (source / "dev.jsonl").read_bytes(),
    }
    manifest["files"] = [
        {"name": name, "rows": content.count(b"\n"), "sha256": sha256(content).hexdigest()}
        for name, content in contents.items()
    ]
    manifest["subset"] = {"of": digest, "order": order, "seed": seed, **subset}
    with write_folder(target) as part:
        for name, content in contents.items():
            (part / name).write_bytes(content)
        (part / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True) + "\n")
    return target


def read_subset(target: Path) -> dict[str, Any] | None:
    """Return the subset that write_subset described in the manifest, or None if there is none."""
    try:
        subset: dict[str, Any] = json.loads((target / "manifest.json").read_text())["subset"]
    except (OSError, ValueError, KeyError):
        return None
    return subset
