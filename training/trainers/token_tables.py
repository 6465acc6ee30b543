"""Rows of a training as tokens: made once, by processes, kept as mapped Arrow."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import numpy as np

from training.recipes.job_folder import write_folder
from training.trainers.processes import is_leading, wait_for_all
from training.trainers.recipe import TrainingTask

ROWS_PER_PROCESS = 2000  # Fewer are sooner done than a process is started.


def tokenize_rows(
    task: TrainingTask, tokenizer: Any, count: int, make: Callable[[int], Mapping[str, Any]], *decides: object
) -> Any:
    """Return a task's table of rows; `decides`: what counts beside set and tokenizer."""
    # The tokenizer's whole definition: two of one name may differ.
    parts = (task.recipe, task.data.sha256, tokenizer.backend_tokenizer.to_str(), *decides)
    key = sha256("\0".join(map(str, parts)).encode()).hexdigest()
    return make_table(count, make, task.cache, key)


def make_table(count: int, make: Callable[[int], Mapping[str, Any]], folder: Path | None, key: str) -> Any:
    """Return a table whose row n is `make(n)`: read from the folder where one of this key lies there.

    Without a folder it stays in memory. Where several processes train, the first writes it and all read it.
    """
    if folder is None:
        return datasets.Dataset.from_list([dict(make(number)) for number in range(count)])
    kept = folder / key
    if is_leading() and not kept.exists():
        if folder.exists():  # Of another base, set or length.
            shutil.rmtree(folder)
        _write_table(count, make, kept)
    wait_for_all()
    return datasets.load_from_disk(str(kept))


def _write_table(count: int, make: Callable[[int], Mapping[str, Any]], folder: Path) -> None:
    processes = min(os.cpu_count() or 1, count // ROWS_PER_PROCESS)
    numbers = datasets.Dataset.from_dict({"number": range(count)})
    datasets.disable_progress_bars()
    table = numbers.map(
        lambda row: make(row["number"]),
        remove_columns=["number"],
        num_proc=processes if processes > 1 else None,
        # Nothing is looked up by what the function is: that would hash the tokenizer and all rows.
        new_fingerprint=folder.name[:16],
        load_from_cache_file=False,
    )
    with write_folder(folder) as part:
        table.save_to_disk(str(part))


def list_lengths(table: Any, column: str) -> list[int]:
    """Return the length of each list of a column, without reading what is in them."""
    chunks = table.data.column(column).chunks
    offsets = [np.diff(chunk.offsets.to_numpy()) for chunk in chunks]
    return [int(one) for one in np.concatenate(offsets)] if offsets else []


class TokenRows(Sequence[Any]):
    """The rows of a table, each made to an object when it is asked for."""

    def __init__(self, table: Any, kind: Callable[..., Any]) -> None:
        self.table, self.kind = table, kind

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return self.kind(**self.table[int(place)])
