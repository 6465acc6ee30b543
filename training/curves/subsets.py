"""Nested subsets of a training set by whole queries, each an export of its own (pure).

Queries stand in one order, and a subset is a beginning of it: every smaller one is contained in
every larger one. The dev split is the same file in all of them.
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
from training.jobs.folder import write_folder
from training.recipes.data import open_manifest, read_manifest, read_rows

TIME, RANDOM = "time", "random"
NO_DEV = gettext_noop("%(folder)s has no dev split to measure on: export with a smaller split")


@dataclass(slots=True)
class QueryLines:
    """The lines of one query in a split, and how many labels stand in them."""

    query_id: str
    lines: list[int] = field(default_factory=list)  # Their numbers, from 1.
    labels: int = 0  # Documents that somebody judged; those that are only assumed to be negatives do not count.
    labelled_at: str = ""  # When its newest label was made, in UTC; empty where no line says so.


def order_queries(folder: Path, form: str, order: str, seed: int) -> list[QueryLines]:
    """Return the queries of train: by the time of their newest label, or in a seeded random order. Raises BadInput."""
    train, dev = (_group_lines(folder / f"{split}.jsonl", form) for split in ("train", "dev"))
    if not dev:
        raise BadInput(_(NO_DEV) % {"folder": folder.name})
    if shared := sorted(train.keys() & dev.keys()):
        raise BadInput(_("Query %(query)s is in train and in dev: export the set again") % {"query": shared[0]})
    # By hash, so that a subset at another point keeps the queries of the smaller one.
    if order == RANDOM:
        return sorted(train.values(), key=lambda one: sha256(f"{seed}\0{one.query_id}".encode()).digest())
    if without := [one.query_id for one in train.values() if not one.labelled_at]:
        raise BadInput(
            _("Query %(first)s does not say when it was labelled: export the set again, or use the order random")
            % {"first": without[0]}
        )
    return sorted(train.values(), key=lambda one: (one.labelled_at, one.query_id))


def _group_lines(path: Path, form: str) -> dict[str, QueryLines]:
    """Return the lines of a split by query; a split without a file has none. Raises BadInput with file and line."""
    queries: dict[str, QueryLines] = {}

    def add(row: Mapping[str, Any], number: int) -> None:
        # A row without an id is a query of its own, as for those who read the set to train.
        query_id = str(row.get("query_id") or f"line-{number}")
        query = queries.setdefault(query_id, QueryLines(query_id))
        query.lines.append(number)
        # Of its document, or of all its query's documents.
        query.labels += len(row.get("positives", ()))
        query.labels += sum(not one.get("assumed") for one in (row["negatives"] if "positives" in row else [row]))
        query.labelled_at = max(query.labelled_at, str(row.get("labelled_at") or ""))

    if path.exists():
        list(read_rows(path, add, form))
    return queries


def check_points(points: Sequence[int]) -> None:
    """Raise BadInput for fewer than two points, and for points that do not grow."""
    if len(points) < 2 or sorted(set(points)) != list(points) or points[0] < 1:
        raise BadInput(_("Name two points or more, from the smallest to the largest, such as 500,1000,2000"))


def check_quickly(folder: Path, form: str, order: str, points: Sequence[int]) -> None:
    """Raise BadInput for what is known to be wrong without reading the set: its manifest and its first row say it."""
    check_points(points)
    manifest, _raw = open_manifest(folder, form)
    dev, train = folder / "dev.jsonl", folder / "train.jsonl"
    if not dev.exists() or not dev.stat().st_size:
        raise BadInput(_(NO_DEV) % {"folder": folder.name})
    rows = next((one["rows"] for one in manifest.get("files", []) if one["name"] == train.name and "rows" in one), None)
    first: Any = {}
    # What is no row at all says whoever reads the whole file.
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
    """Return for each point the beginning of the order whose labels come nearest to it: at most a query away.

    `asked`: the point; `queries`: the first so many of the order; `labels`: those that they hold. Raises BadInput.
    """
    check_points(points)
    sums = list(accumulate(one.labels for one in queries))
    if points[-1] > sums[-1]:
        raise BadInput(
            ngettext(
                "Point %(asked)s is more than the %(there)s label of the training set",
                "Point %(asked)s is more than the %(there)s labels of the training set",
                sums[-1],
            )
            % {"asked": f"{points[-1]:,}", "there": f"{sums[-1]:,}"}
        )
    # Nearest from below or above, since whole queries seldom come to the exact number; of two as near, the smaller.
    chosen = [min(range(len(sums)), key=lambda place: (abs(sums[place] - point), place)) for point in points]
    if same := [asked for asked, one, next_one in zip(points[1:], chosen, chosen[1:], strict=False) if one == next_one]:
        raise BadInput(
            _("Point %(asked)s has the same queries as the point before it: take points further apart")
            % {"asked": f"{same[0]:,}"}
        )
    return [
        {"asked": asked, "labels": sums[place], "queries": place + 1}
        for asked, place in zip(points, chosen, strict=True)
    ]


def write_subset(
    source: Path, target: Path, form: str, *, order: str, seed: int, points: Sequence[int], asked: int
) -> Path:
    """Write an export with the queries of one of the points and the whole dev split, unless it is
    there; return its folder. Raises BadInput.
    """
    if (target / "manifest.json").exists():
        return target
    manifest, digest = read_manifest(source, form)
    queries = order_queries(source, form, order, seed)
    subset = next(one for one in plan_subsets(queries, points) if one["asked"] == asked)
    chosen = sorted(line for one in queries[: subset["queries"]] for line in one.lines)
    # Bytes and not text: a subset's lines are those of the export, to the byte.
    lines = (source / "train.jsonl").read_bytes().split(b"\n")
    contents = {
        "train.jsonl": b"".join(lines[number - 1] + b"\n" for number in chosen),
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
    """Return what write_subset wrote there; None where nothing is."""
    try:
        found: dict[str, Any] = json.loads((target / "manifest.json").read_text())["subset"]
    except (OSError, ValueError, KeyError):
        return None
    return found
