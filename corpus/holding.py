"""Locks on rows before they change, and errors for rows that were deleted meanwhile."""

from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError
from django.db.models import Manager, Model, QuerySet
from django.utils.translation import gettext as _
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, SerializationFailure

from corpus.errors import Deleted
from store.paths import name_below_var

M = TypeVar("M", bound=Model)


def hold(rows: QuerySet[M] | Manager[M], pk: Any, *, no_key: bool = False) -> M:
    """Return the row, locked until the transaction ends; with `no_key` others may refer to it. Raises Deleted."""
    # Only this table is locked: joined rows are only read.
    row = rows.select_for_update(no_key=no_key, of=("self",)).filter(pk=pk).first()
    if row is None:
        raise deleted_meanwhile()
    return row


def hold_row(row: M, *, no_key: bool = False) -> M:
    """Lock the row of an object and refresh it, since it may have changed since it was read. Raises Deleted."""
    hold(type(row)._base_manager.all(), row.pk, no_key=no_key)
    row.refresh_from_db()
    return row


def deleted_meanwhile() -> Deleted:
    """Return the error for a row that was deleted after it was read."""
    return Deleted(_("It no longer exists: somebody has deleted it."))


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
        return 409, _("Somebody has just deleted what this belongs to, or uses it. Look at what is there now.")
    # PostgreSQL rolls back one of the transactions that wait for each other.
    if isinstance(error.__cause__, DeadlockDetected | SerializationFailure):
        return 409, _("Somebody changed the same at this moment, so nothing was changed here. Try again.")
    return None
