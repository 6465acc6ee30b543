"""Kept lists of queries, which stay out of training sets."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status

from annotation.models.snapshots import QuerySplit
from annotation.query_splits import lists
from api.authentication import may, scope_of
from api.etags import require_match
from api.models import AccessToken
from api.problems import Given
from corpus.holding import hold_row

router = Router(tags=["files"])
MANAGE = AccessToken.TokenScope.MANAGE


class QueryListIn(Given):
    """The queries of a list."""

    query_ids: list[str] = Field(min_length=1, max_length=1_000_000)


class QueryListOut(Schema):
    """A kept list of queries: they enter no training set, unless it names the list as a split."""

    name: str
    queries: int
    made_by: str
    changed_at: datetime


@router.get("/collections/{slug:name}/query-lists", auth=may("admin"), response=list[QueryListOut])
def list_query_lists(request: HttpRequest, name: str) -> Any:
    """List the kept lists of queries."""
    return [_show_list(row) for row in lists.list_splits(scope_of(request).collection)]


@router.get("/collections/{slug:name}/query-lists/{slug:split}", auth=may("admin"), response=QueryListOut)
def read_query_list(request: HttpRequest, name: str, split: str) -> Any:
    """Read a kept list."""
    return _show_list(_find_list(request, split))


@router.put(
    "/collections/{slug:name}/query-lists/{slug:split}",
    auth=may("admin", MANAGE),
    response=QueryListOut,
)
def keep_query_list(request: HttpRequest, name: str, split: str, body: QueryListIn) -> Any:
    """Keep a list of queries under a name, in place of the one that had it."""
    scope = scope_of(request)
    by = scope.user.username
    return _show_list(lists.keep_split(scope, scope.collection, split, body.query_ids, made_by=by))


@router.delete("/collections/{slug:name}/query-lists/{slug:split}", auth=may("admin", MANAGE), response={204: None})
def delete_query_list(request: HttpRequest, name: str, split: str) -> Any:
    """Delete a kept list: training sets may hold its queries from now on."""
    scope = scope_of(request)
    with transaction.atomic():
        found = hold_row(_find_list(request, split), no_key=True)
        require_match(request, QueryListOut, _show_list(found))
        lists.delete_split(scope, scope.collection, split)
    return Status(204, None)


def _find_list(request: HttpRequest, split: str) -> QuerySplit:
    rows = QuerySplit.objects.filter(collection=scope_of(request).collection, name=split)
    if (found := rows.first()) is None:
        raise Http404(_("List not found."))
    return found


def _show_list(row: QuerySplit) -> dict[str, Any]:
    shown = ("name", "made_by", "changed_at")
    return {"queries": len(row.query_ids), **{field: getattr(row, field) for field in shown}}
