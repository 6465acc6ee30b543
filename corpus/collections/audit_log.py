"""Recording an act from apps below the audit log: setting AUDIT names it."""

import os
from getpass import getuser
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from corpus.models import Collection


def shell_user() -> str:
    """Return the system account of a command, or its number without a name."""
    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def record_act(by: Any, act: str, collection: Collection | None = None, **details: object) -> int:
    """Append an act to the audit log, in the transaction of the act; return its number."""
    return int(import_string(settings.AUDIT)(by, act, collection, **details))
