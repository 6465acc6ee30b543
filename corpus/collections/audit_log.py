"""The audit log, for apps that must not import it: the setting AUDIT names its function."""

import os
from getpass import getuser
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from corpus.models import Collection


def shell_user() -> str:
    """Return the name of the system account that runs a command, or its number."""
    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def record_act(by: Any, act: str, collection: Collection | None = None, **details: object) -> int:
    """Append an action to the audit log, in the transaction of the action; return the entry's number."""
    return int(import_string(settings.AUDIT)(by, act, collection, **details))
