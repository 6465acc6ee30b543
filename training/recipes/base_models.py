"""Base models by name: a tiny one, a folder, or a hub id. Pages may name fewer folders than commands."""

import os
import re
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from corpus.errors import BadInput

HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
TINY = "tiny:"
TINY_BASES = ("tiny:qwen3", "tiny:qwen3.5", "tiny:encoder")


def of_page(name: str) -> str:
    """Return the base that a page names: a folder under settings.BASE_MODELS, else a hub id. Raises BadInput."""
    root = settings.BASE_MODELS
    folder = Path(os.path.normpath(root / name))
    if folder.is_relative_to(root) and folder != root and folder.is_dir():
        return str(folder)
    if HUB_ID.fullmatch(name):
        return name
    raise BadInput(
        _("%(name)s is neither a folder in %(root)s nor a hub id (owner/name): put the model there, or name a hub id")
        % {"name": name, "root": root}
    )


def of_command(name: str) -> str:
    """Return the base that a command names: any folder, since its user can read them all anyway, or a hub id."""
    folder = Path(name).expanduser()
    return str(folder.resolve()) if not name.startswith(TINY) and folder.is_dir() else name
