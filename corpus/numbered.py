"""Look-up of rows by their number in a collection, such as campaigns, imports and webhooks."""

from typing import Any, TypeVar

from django.db.models import Manager, QuerySet
from django.http import Http404

from corpus.models import Collection, Numbered

M = TypeVar("M", bound=Numbered)


def find_numbered(rows: QuerySet[M] | Manager[M], collection: Collection | None, number: Any) -> M | None:
    """Return the row with this number, which may be typed text; None if there is none.

    Without a collection, look among the rows that have none.
    """
    text = str(number)
    # More than nine digits would exceed the column.
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    return rows.filter(collection=collection, number=int(text)).first()


def numbered_or_404(rows: QuerySet[M] | Manager[M], collection: Collection, number: Any, missing: str) -> M:
    """Return the collection's row with this number. Raises Http404 with the message `missing`."""
    if (row := find_numbered(rows, collection, number)) is None:
        raise Http404(missing)
    return row
