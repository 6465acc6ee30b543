"""Lists by pages: rows by their number, from the one after `after`."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from ninja import Field, Query, Schema

T = TypeVar("T")
M = TypeVar("M", bound=Model)
Cursor = Annotated[int, Query(ge=0, lt=1 << 63, description="`next` of the page before; 0: the first page.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")]


class Page(Schema, Generic[T]):
    """Some rows of a list."""

    items: list[T]
    next: int | None = Field(None, description="Ask for the next page with `after` set to this; null: it was the last.")


def find_row(rows: QuerySet[M], number: int, missing: str) -> M:
    """Return the row with this primary key. Raises Http404, which says `missing`."""
    # Numbers come from addresses: one beyond the range of a bigint would be an error of the database.
    row = rows.filter(pk=number).first() if 0 < number < 1 << 63 else None
    if row is None:
        raise Http404(missing)
    return row


def page_of(
    rows: QuerySet[Any], after: int, limit: int, show: Callable[[Any], Any] = lambda row: row
) -> dict[str, Any]:
    """Return the page of rows that begins after that primary key, each as `show` gives it."""
    # ADR 0091: after a key and not by an offset, so that new rows neither repeat nor hide others. One row more than
    # asked for says whether there is a next page.
    found = list(rows.filter(pk__gt=after).order_by("pk")[: limit + 1])
    shown = found[:limit]
    return {"items": [show(row) for row in shown], "next": shown[-1].pk if len(found) > limit else None}
