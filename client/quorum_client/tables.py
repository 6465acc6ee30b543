"""Conversion of records to a pandas data frame or a Hugging Face dataset."""

from collections.abc import Iterable
from typing import Any

from quorum_client.extras import import_extra
from quorum_client.records import Record


def to_pandas(rows: Iterable[Record]) -> Any:
    """Return a `pandas.DataFrame` with a row for each record and a column for each field."""
    pandas = import_extra("pandas", "pandas", "to_pandas")
    return pandas.DataFrame([row.model_dump() for row in rows])


def to_dataset(rows: Iterable[Record]) -> Any:
    """Return a `datasets.Dataset` with a row for each record and a column for each field."""
    datasets = import_extra("datasets", "datasets", "to_dataset")
    return datasets.Dataset.from_list([row.model_dump() for row in rows])
