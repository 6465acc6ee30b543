"""The id of this machine among those that share an instance, one for each VAR."""

import os
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from django.conf import settings

FILE = "node_id"


def node_id() -> str:
    """Return the id of this machine, which is drawn once and stored in VAR."""
    return _read_or_create(Path(settings.VAR))


@cache
def _read_or_create(var: Path) -> str:
    path = var / FILE
    if not path.exists():
        var.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = var / f".{FILE}.{os.getpid()}.{uuid.uuid4().hex}"
        part.write_text(uuid.uuid4().hex)
        # Of two processes the first one's id stays, since a link does not replace a file.
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
    return path.read_text().strip()
