"""What is kept of the inbox: how far its readers have seen it."""

from datetime import datetime

from django.db.models import F, Value
from django.db.models.functions import Greatest

from annotation.models import User
from annotation.models.inbox import InboxReader
from corpus.models import Collection


def mark_seen(user: User, collection: Collection, until: datetime) -> None:
    """Remember that a person has seen what ended in a collection up to `until`; never less than before."""
    reader, _is_new = InboxReader.objects.get_or_create(user=user, collection=collection)
    # PostgreSQL's GREATEST ignores NULL.
    InboxReader.objects.filter(pk=reader.pk).update(seen_at=Greatest(F("seen_at"), Value(until)))
