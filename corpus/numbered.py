"""Finding by number of a collection: a campaign, an import, a webhook."""

from typing import Any, TypeVar

from django.db.models import Manager, QuerySet
from django.http import Http404

from corpus.models import Collection, Numbered

M = TypeVar("M", bound=Numbered)


def find_numbered(rows: QuerySet[M] | Manager[M], collection: Collection | None, number: Any) -> M | None:
    """Return the row of this number, which people may have typed; None for none. No collection: of rows without."""
    text = str(number)
    # Nine digits: more are beyond the column, and no collection has as many.
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    return rows.filter(collection=collection, number=int(text)).first()


def numbered_or_404(rows: QuerySet[M] | Manager[M], collection: Collection, number: Any, missing: str) -> M:
    """Return the collection's row of this number. Raises Http404, which says `missing`."""
    if (row := find_numbered(rows, collection, number)) is None:
        raise Http404(missing)
    return row
