"""Recording an act from apps that stand below or beside the one that keeps the audit log.

As with corpus.access, a setting (AUDIT) names the implementation: annotation.audit_log.recording.record.
"""

import os
from getpass import getuser
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from corpus.models import Collection


def shell_user() -> str:
    """The account of the operating system under which a command runs; its number where it has no name."""
    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def record_act(by: Any, act: str, collection: Collection | None = None, **details: object) -> int:
    """Append one act to the audit log, in the transaction of the act; its number."""
    return int(import_string(settings.AUDIT)(by, act, collection, **details))
