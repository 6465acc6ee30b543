"""API of comments and flags: list them, answer one, and read the answers to one's own."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from actions.services import Actor
from annotation.models.threads import Thread
from annotation.work.threads import selectors, services
from annotation.work.threads.options import ReplyOptions
from api.authentication import JUDGE, may, scope_of
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import RequestBody

router = Router(tags=["threads"])


class ReplyOut(Schema):
    """An answer: a text, an outcome, or both."""

    author: str
    text: str
    outcome: str
    at: datetime


class ThreadBase(Schema):
    """A comment or flag of an annotator with its answers."""

    item: int
    query: str
    document: str
    flagged: bool
    text: str
    written_at: datetime
    outcome: str = Field(description="What became of it, in words; empty: nothing yet.")
    replies: list[ReplyOut]


class OwnThreadOut(ThreadBase):
    """A comment or flag of your own. `item`: the number of its task."""

    unread: bool


class ThreadOut(ThreadBase):
    """A comment or flag. `item` and `number` name it when it is answered."""

    number: int
    pair: int
    username: str
    waits: bool = Field(description="Nobody has answered it, and nothing has settled it.")


class SeenIn(RequestBody):
    """How far the answers have been read."""

    until: datetime = Field(description="With its time zone.")


@router.get("/collections/{slug:name}/threads", auth=may("admin"), response=Page[ThreadOut])
def list_threads(
    request: HttpRequest, name: str, unanswered: bool = False, after: Cursor = 0, limit: Limit = 100
) -> Any:
    """List the comments and flags of annotators with their answers; `unanswered`: those that wait for an answer."""
    rows = Thread.objects.filter(collection=scope_of(request).collection)
    rows = rows.filter(waits=True) if unanswered else rows
    return page_of(rows.select_related("pair__query", "pair__document", "membership__user"), after, limit, _show_thread)


@router.post("/collections/{slug:name}/replies/{item}/{number}", auth=may("answer", JUDGE), response={201: ReplyOut})
@decorate_view(once)
def answer_thread(request: HttpRequest, name: str, item: int, number: int, body: ReplyOptions) -> Any:
    """Answer a comment or flag, say what became of it, or both."""
    scope = scope_of(request)
    message = services.answer_thread(Actor.of(scope), selectors.find_thread(scope.collection, item, number), body)
    fields = {"text": message.text, "outcome": message.outcome, "at": message.created_at}
    return Status(201, {"author": scope.user.username, **fields})


@router.get("/collections/{slug:name}/task/replies", auth=may("judge"), response=Page[OwnThreadOut])
def list_replies(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List your own comments and flags with their answers, the oldest first."""
    seen_at = scope_of(request).member.replies_seen_at
    rows = selectors.own_threads(scope_of(request).member)
    return page_of(
        rows, after, limit, lambda row: _show(row) | {"unread": row.news_at is not None and row.news_at > seen_at}
    )


@router.post("/collections/{slug:name}/task/replies/seen", auth=may("judge", JUDGE), response={204: None})
def mark_replies_seen(request: HttpRequest, name: str, body: SeenIn) -> Any:
    """Mark the answers up to a time as read."""
    # Times in responses are cut to milliseconds.
    services.mark_seen(scope_of(request).member, body.until + timedelta(milliseconds=1))
    return Status(204, None)


def _show(row: Thread) -> dict[str, Any]:
    return {
        "item": row.public_id,
        "query": row.pair.query.external_id,
        "document": row.pair.document.external_id,
        "outcome": row.outcome_text,
        "replies": row.replies,
        **{name: getattr(row, name) for name in ("flagged", "text", "written_at")},
    }


def _show_thread(row: Thread) -> dict[str, Any]:
    named = {"pair": row.pair_id, "username": row.membership.user.username, "waits": row.waits}
    return _show(row) | {"item": row.item_id, "number": row.public_id, **named}
