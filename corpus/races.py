"""The answers to lost races: what a request used was deleted or changed by another one meanwhile."""

from pathlib import Path

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError
from django.utils.translation import gettext as _
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, SerializationFailure

from corpus.errors import Deleted
from corpus.holding import deleted_meanwhile
from store.paths import name_below_var

# Django raises DatabaseError with these words if the UPDATE of a row finds none.
NOT_THERE = "did not affect any rows"


def explain_race(error: BaseException) -> tuple[int, str] | None:
    """Return the HTTP status and the message for a lost race that `hold` did not catch; None for other errors."""
    if isinstance(error, Deleted):
        return 404, str(error)
    if isinstance(error, ObjectDoesNotExist) or (isinstance(error, DatabaseError) and NOT_THERE in str(error)):
        return 404, str(deleted_meanwhile())
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str | Path):
        # Files of VAR are deleted with what they belong to, also while a page reads them.
        return None if name_below_var(Path(error.filename)) is None else (404, str(deleted_meanwhile()))
    if not isinstance(error, DatabaseError):
        return None
    if isinstance(error.__cause__, ForeignKeyViolation):
        return 409, _("Someone has just deleted what this belongs to, or is using it. Reload to see the current state.")
    # PostgreSQL rolls back one of the transactions that wait for each other.
    if isinstance(error.__cause__, DeadlockDetected | SerializationFailure):
        return 409, _("Someone else changed this at the same moment, so nothing was changed. Try again.")
    return None
