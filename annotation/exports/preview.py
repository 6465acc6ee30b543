"""Preview of an export: it is made in a temporary folder, without a row in the database or a lock."""

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.snapshots import build_snapshot, write_files
from corpus.models import Collection

FIRST = 5  # Number of rows of each file.
LONGEST = 400  # Most characters of a row.


def preview_export(collection: Collection, options: ExportOptions) -> dict[str, Any]:
    """Make the export for its counts and first rows. Raises BadInput as `write_snapshot` does.

    Return its manifest, the first rows of each file, and the counts of each split of a training set.
    """
    with TemporaryDirectory() as folder:
        export_files = ExportFiles(Path(folder))
        try:
            _moment, manifest = write_files(build_snapshot(collection, options, Path(folder)), export_files)
        except BaseException:
            export_files.discard()
            raise
        files = []
        for entry in manifest["files"]:
            path = Path(folder) / entry["name"]
            if path.suffix == ".parquet":
                import pyarrow.parquet

                batch = next(pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=FIRST), None)
                rows = [str(row) for row in batch.to_pylist()] if batch is not None else []
            else:
                with path.open(encoding="utf-8") as file:
                    rows = [line.rstrip("\n") for line in islice(file, FIRST)]
            files.append((entry["name"], [row if len(row) <= LONGEST else f"{row[:LONGEST]} …" for row in rows]))
    # `other`: number of pairs that are not relevant.
    counts = {
        side: side_counts | {"other": side_counts["pairs"] - side_counts["relevant"]}
        for side, side_counts in manifest["counts"].get("splits", {}).items()
    }
    splits = [(side, counts[side]) for side in SPLITS if side in counts]
    return {"form": options.form, "manifest": manifest, "files": files, "splits": splits}
