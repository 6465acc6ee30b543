"""Locks on rows before they change, and errors for rows that were deleted meanwhile."""

from typing import Any, TypeVar

from django.db.models import Manager, Model, QuerySet
from django.utils.translation import gettext as _

from corpus.errors import Deleted

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
    return Deleted(_("It no longer exists: someone has deleted it."))
