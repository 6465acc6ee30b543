"""What is read of comments, flags and their answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.expressions import ArraySubquery
from django.core.cache import cache
from django.db.models import OuterRef, QuerySet
from django.db.models.functions import Coalesce, JSONObject
from django.http import Http404
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership
from annotation.models.threads import Thread, ThreadMessage
from corpus.models import Collection
from store.sql import fetch_row, read_sql

SHOWN = 50
KEPT_S = 60
_UNREAD = read_sql(__file__, "count_unread")


@dataclass(frozen=True, slots=True)
class RepliesPage:
    """A page of a member's comments and flags, those with the newest news first."""

    threads: list[Thread]
    number: int
    has_more: bool
    seen_at: datetime  # What came later is unread.

    @property
    def unread(self) -> list[Thread]:
        return [thread for thread in self.threads if thread.news_at and thread.news_at > self.seen_at]


def find_thread(collection: Collection, item: int, number: int) -> Thread:
    """Return the comment or flag that a number names on an item (Assignment.public_id). Raises Http404."""
    threads = Thread.objects.select_related("collection").filter(collection=collection, item=item, public_id=number)
    # Longer numbers are no ids.
    thread = threads.first() if max(item, number) < 1 << 63 else None
    if thread is None:
        raise Http404(_("Comment not found."))
    return thread


def list_threads(assignments: Iterable[Assignment]) -> list[Thread]:
    """Return what was written in these assignments with its authors, the oldest first."""
    # By key, which reaches into the view; a pair would be looked for among all comments.
    threads = Thread.objects.filter(pk__in=[row.pk for row in assignments]).select_related("membership__user")
    return list(threads.order_by("written_at", "pk"))


def count_unanswered_recently(collection: Collection, most: int) -> int:
    """Count those that wait for an answer, up to `most`, for pages that poll: up to KEPT_S seconds old.

    It reads every comment. Other pages count in the statement of count_waiting.
    """
    count = cache.get(unanswered_key(collection))
    if count is None:
        count = Thread.objects.filter(collection=collection, waits=True)[:most].count()
        cache.set(unanswered_key(collection), count, KEPT_S)
    return int(count)


def unanswered_key(collection: Collection) -> str:
    """Return the key under which that count is cached."""
    return f"unanswered-threads:{collection.pk}"


def own_threads(membership: Membership) -> QuerySet[Thread]:
    """Return a member's own comments and flags, those with the newest news first."""
    threads = Thread.objects.filter(membership=membership).select_related("pair__query", "pair__document")
    return threads.order_by(Coalesce("news_at", "written_at").desc(), "-pk")


def replies_page(membership: Membership, number: int) -> RepliesPage:
    """Return fifty of a member's comments and flags, from the page `number`, which begins at 1."""
    start = (number - 1) * SHOWN
    threads = list(own_threads(membership)[start : start + SHOWN + 1])
    return RepliesPage(threads[:SHOWN], number, len(threads) > SHOWN, membership.replies_seen_at)


def count_unread(membership: Membership) -> int:
    """Return how many of a member's comments and flags have news that they have not read."""
    (count,) = fetch_row(_UNREAD, membership=membership.pk, seen=membership.replies_seen_at)
    return int(count)


def with_messages(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    """Return assignments with the messages of their threads as `answers`, in the same statement."""
    messages = ThreadMessage.objects.filter(assignment=OuterRef("pk")).order_by("pk")
    columns = JSONObject(author="written_by__username", text="text", outcome="outcome", at="created_at")
    return assignments.annotate(answers=ArraySubquery(messages.values(json=columns)))
