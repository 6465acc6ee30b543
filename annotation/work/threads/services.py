"""Answering comments and flags, and remembering how far their authors have read."""

from datetime import datetime

from django.core.cache import cache
from django.db.models import F, Value
from django.db.models.functions import Greatest

from actions.services import Actor, action
from annotation.models import Membership
from annotation.models.threads import Thread, ThreadMessage
from annotation.work.threads.options import ReplyOptions
from annotation.work.threads.selectors import unanswered_key


def _note_answer(_options: ReplyOptions, message: ThreadMessage) -> dict[str, object]:
    # The text is in the thread, which is append-only as well.
    assignment = message.assignment
    return {"item": assignment.item_id, "outcome": message.outcome, "concerns": assignment.membership.user}


@action("thread.answered", role="answer", noted=_note_answer)
def answer_thread(actor: Actor, thread: Thread, options: ReplyOptions) -> ThreadMessage:
    """Answer a comment or flag, say what became of it, or both."""
    cache.delete(unanswered_key(thread.collection))
    return ThreadMessage.objects.create(
        assignment_id=thread.pk, written_by=actor.user, text=options.text.strip(), outcome=options.outcome or ""
    )


def mark_seen(membership: Membership, until: datetime) -> None:
    """Remember that a member has read the answers up to `until`; never less than before."""
    rows = Membership.objects.filter(pk=membership.pk)
    rows.update(replies_seen_at=Greatest(F("replies_seen_at"), Value(until)))
