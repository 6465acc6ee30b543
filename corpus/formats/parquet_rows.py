"""Rows of a Parquet file, a batch at a time. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.cell_values import as_cell
from corpus.formats.files import FileSource, is_nearly_empty

BATCH = 500  # Rows in memory at once.


def read_header(source: FileSource) -> tuple[str, ...]:
    """Return the names of the columns. Raises BadInput for a damaged file."""
    with _open_file(source) as file:
        return tuple(file.schema_arrow.names)


def read_rows(source: FileSource, left_out: Collection[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (number from 1, cells) of each row; cells of columns that are left out are empty."""
    names = read_header(source)
    for number, row in read_objects(source, left_out):
        yield number, read_cells(source, number, row, names)


def read_cells(source: FileSource, number: int, row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the cells of a row. Raises BadInput for bytes that are not UTF-8."""
    try:
        return [as_cell(row.get(name)) for name in names]
    except UnicodeDecodeError:
        raise source.bad(number, _("bytes that are not UTF-8; write texts as strings")) from None


def read_objects(source: FileSource, left_out: Collection[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, values by column) of each row, without the columns that are left out."""
    with _open_file(source) as file:
        # A column of one repeated value takes almost no bytes, so a small file may have far too many cells.
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if is_nearly_empty(source.path.stat().st_size, rows * columns):
            message = _(
                "%(file)s: %(rows)s rows of %(columns)s columns, nearly all of them empty; leave out empty columns"
            )
            raise BadInput(message % {"file": source, "rows": f"{rows:,}", "columns": f"{columns:,}"})
        names = [name for name in file.schema_arrow.names if name not in left_out]
        number = 0
        for batch in file.iter_batches(batch_size=BATCH, columns=names, use_threads=False):
            for row in batch.to_pylist():
                number += 1
                yield number, row


@contextmanager
def _open_file(source: FileSource) -> Iterator[Any]:
    from pyarrow import ArrowException  # A slow import, which other formats do not need.
    from pyarrow.parquet import ParquetFile

    with source.seekable() as stream:
        try:
            # Pages are read when needed, instead of a whole row group at once.
            with ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20) as file:
                yield file
        except (ArrowException, OSError):
            message = _("%(file)s: the Parquet file is damaged or not complete; copy it again")
            raise BadInput(message % {"file": source}) from None
