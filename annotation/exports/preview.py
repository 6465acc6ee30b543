"""Preview of an export: it is made in a folder that is removed again, without a row, so nothing is locked."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.formats import Format
from annotation.exports.sets.options import SPLITS, SetOptions
from annotation.exports.snapshots import build_snapshot, write_files
from corpus.models import Collection

FIRST = 5  # Rows of each file.
LONGEST = 400  # Characters of a row.


def preview_export(
    *,
    collection: Collection,
    form: Format,
    origins: Sequence[str] | None,
    asked: SetOptions | None,
    leave_out_failed: bool,
    aggregate: str | None = None,
    assessors: Sequence[str] = (),
) -> dict[str, Any]:
    """Make the export for its counts and first rows. Raises BadInput as `create_snapshot` and `write_snapshot` do.

    Returns the manifest that it would have, the first rows of each file, and the counts of each split of a training
    set.
    """
    with TemporaryDirectory() as folder:
        snapshot = build_snapshot(
            collection=collection,
            form=form,
            folder=Path(folder),
            origins=origins,
            asked=asked,
            leave_out_failed=leave_out_failed,
            aggregate=aggregate,
            assessors=assessors,
        )
        written = ExportFiles(Path(folder))
        try:
            _moment, manifest = write_files(snapshot, form, written)
        except BaseException:
            written.discard()
            raise
        files = [(file["name"], _read_first_rows(Path(folder) / file["name"])) for file in manifest["files"]]
    return {"form": form, "manifest": manifest, "files": files, "splits": _count_splits(manifest["counts"])}


def _count_splits(counts: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    """Return the counts by split; `other`: pairs that are not relevant."""
    found: dict[str, dict[str, int]] = counts.get("splits", {})
    counted = {side: n | {"other": n["pairs"] - n["relevant"]} for side, n in found.items()}
    return [(side, counted[side]) for side in SPLITS if side in counted]


def _read_first_rows(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        batch = next(pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=FIRST), None)
        rows = [str(row) for row in batch.to_pylist()] if batch is not None else []
    else:
        with path.open(encoding="utf-8") as file:
            rows = [line.rstrip("\n") for line in islice(file, FIRST)]
    return [row if len(row) <= LONGEST else f"{row[:LONGEST]} …" for row in rows]
