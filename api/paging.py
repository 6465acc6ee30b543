"""Pages of lists: rows ordered by number, from the one after `after`."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from ninja import Field, Query, Schema

from corpus.models import Numbered

T = TypeVar("T")
M = TypeVar("M", bound=Model)
Cursor = Annotated[int, Query(ge=0, lt=1 << 63, description="`next` of the page before; 0: the first page.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")]


class Page(Schema, Generic[T]):
    """Some rows of a list."""

    items: list[T]
    next: int | None = Field(None, description="Ask for the next page with `after` set to this; null: it was the last.")


def key_of(rows: QuerySet[Any]) -> str:
    """Return the field that identifies rows in the API: `number` where collections number them, else `pk`."""
    return "number" if issubclass(rows.model, Numbered) else "pk"


def find_row(rows: QuerySet[M], number: int, message: str) -> M:
    """Return the row with this primary key (numbered rows: numbered_or_404). Raises Http404 with the message."""
    # Numbers come from URLs, and one beyond a bigint would be a database error.
    row = rows.filter(pk=number).first() if 0 < number < 1 << 63 else None
    if row is None:
        raise Http404(message)
    return row


def page_of(
    rows: QuerySet[Any], after: int, limit: int, show: Callable[[Any], Any] = lambda row: row
) -> dict[str, Any]:
    """Return the page of rows after the number `after` (`key_of`), each converted by `show`."""
    # ADR 0091: paged by key instead of offset, so that new rows neither repeat nor hide others.
    # One row more than the limit shows whether there is a next page.
    key = key_of(rows)
    following = list(rows.filter(**{f"{key}__gt": after}).order_by(key)[: limit + 1])
    items = following[:limit]
    return {"items": [show(row) for row in items], "next": getattr(items[-1], key) if len(following) > limit else None}
