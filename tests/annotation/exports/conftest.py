"""A small judged collection, of which sets are made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpus.models import Collection
from tests.judged_books import make_books


@pytest.fixture
def books(db: None) -> Collection:
    return make_books()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    """A data set by the real library, from local files alone; `folder`: of JSON lines for each split."""
    import datasets

    datasets.disable_progress_bars()

    def read(*args: str, folder: Path | None = None, **options: Any) -> Any:
        if folder is not None:
            args, options["data_files"] = ("json",), {one: str(folder / f"{one}.jsonl") for one in ("train", "dev")}
        return datasets.load_dataset(*args, **options, cache_dir=str(tmp_path / "cache"))

    return read
