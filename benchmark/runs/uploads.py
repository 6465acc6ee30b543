"""Uploads as files on disk, under names that errors can say and that do not tell where the server put them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.files.uploadedfile import UploadedFile

from corpus.errors import BadInput


@contextmanager
def saved_uploads(uploads: list["UploadedFile[Any]"]) -> Iterator[list[Path]]:
    """The uploads under their own names until the block ends; BadInput names them as they were uploaded."""
    with TemporaryDirectory() as folder:
        try:
            yield [_save_upload(Path(folder) / str(place), upload) for place, upload in enumerate(uploads)]
        except BadInput as error:
            raise BadInput(re.sub(rf"{re.escape(folder)}/\d+/", "", str(error))) from None


def _save_upload(folder: Path, upload: "UploadedFile[Any]") -> Path:
    path = folder / Path(upload.name or "file").name
    folder.mkdir()
    with path.open("wb") as file:
        for chunk in upload.chunks():
            file.write(chunk)
    return path
