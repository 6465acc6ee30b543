"""Tables of a training's tokenised rows, made once by several processes and stored as memory-mapped Arrow files."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import numpy as np

from training.recipes.job_folder import write_folder
from training.trainers.processes import is_first_process, wait_for_all_processes
from training.trainers.recipe import TrainingTask

ROWS_PER_PROCESS = 2000  # Starting a process takes longer than tokenising fewer rows.


def tokenize_rows(
    task: TrainingTask, tokenizer: Any, count: int, make: Callable[[int], Mapping[str, Any]], *cache_key: object
) -> Any:
    """Return a table whose row n is `make(n)`, from the task's cache if possible.

    `cache_key`: what determines the rows in addition to recipe, training set and tokenizer.
    """
    # By the tokenizer's definition, since tokenizers with the same name may differ.
    parts = (task.recipe, task.data.sha256, tokenizer.backend_tokenizer.to_str(), *cache_key)
    key = sha256("\0".join(map(str, parts)).encode()).hexdigest()
    return make_table(count, make, task.cache, key)


def make_table(count: int, make: Callable[[int], Mapping[str, Any]], folder: Path | None, key: str) -> Any:
    """Return a table whose row n is `make(n)`, read from the folder if it contains a table with this key.

    Without a folder the table is in memory. If several processes train, the first writes the table and all read it.
    """
    if folder is None:
        return datasets.Dataset.from_list([dict(make(number)) for number in range(count)])
    path = folder / key
    if is_first_process() and not path.exists():
        # A table with another key is of another base, set or length.
        if folder.exists():
            shutil.rmtree(folder)
        _write_table(count, make, path)
    wait_for_all_processes()
    return datasets.load_from_disk(str(path))


def _write_table(count: int, make: Callable[[int], Mapping[str, Any]], folder: Path) -> None:
    processes = min(os.cpu_count() or 1, count // ROWS_PER_PROCESS)
    numbers = datasets.Dataset.from_dict({"number": range(count)})
    datasets.disable_progress_bars()
    if count:
        make(0)  # What all rows share is computed here once, and not again in each process.
    table = numbers.map(
        lambda row: make(row["number"]),
        remove_columns=["number"],
        num_proc=processes if processes > 1 else None,
        # Without a fingerprint, the library would hash the function with the tokenizer and all rows.
        new_fingerprint=folder.name[:16],
        load_from_cache_file=False,
    )
    with write_folder(folder) as part:
        table.save_to_disk(str(part))


def list_lengths(table: Any, column: str) -> list[int]:
    """Return the length of each list in a column, without reading the lists."""
    chunks = table.data.column(column).chunks
    lengths = [np.diff(chunk.offsets.to_numpy()) for chunk in chunks]
    return [int(length) for length in np.concatenate(lengths)] if lengths else []


class TokenRows(Sequence[Any]):
    """The rows of a table, each converted to an object of `kind` when it is read."""

    def __init__(self, table: Any, kind: Callable[..., Any]) -> None:
        self.table, self.kind = table, kind

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self.kind(**self.table[int(index)])
