"""Pairs that everybody skipped: no annotator can get them any more, so an admin hands them to the adjudicators."""

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from annotation.models import Assignment, Membership
from corpus.collections.task_order import MEASURING
from corpus.models import Collection, Item


def skipped_by_all(collection: Collection) -> QuerySet[Item]:
    """Return the open items that were skipped, that nobody works on, and that no active member can get."""
    State = Assignment.State
    skipped = Assignment.objects.filter(membership__collection=collection, state=State.SKIPPED)
    open_leases = Assignment.objects.filter(item=OuterRef("pk"), state=State.OPEN)
    # Two levels out: assignments of a member (the inner query) on an item (the outer query).
    earlier = Assignment.objects.filter(item=OuterRef(OuterRef("pk")), membership=OuterRef("pk"))
    candidates = Membership.objects.filter(collection=collection, is_active=True, user__is_active=True).filter(
        ~Exists(earlier.exclude(state=State.RETURNED))
    )
    open_items = Item.objects.filter(collection=collection, state=Item.State.OPEN, taken__lt=F("overlap"))
    open_items = open_items.exclude(reason__in=MEASURING)
    return open_items.filter(~Exists(open_leases), ~Exists(candidates), pk__in=skipped.values("item"))


@transaction.atomic
def hand_over(collection: Collection) -> int:
    """Turn the items that everybody skipped into conflicts for adjudicators; return how many there were."""
    # Somebody is deciding on a locked item at this moment, so it is not stuck.
    rows = skipped_by_all(collection).select_for_update(of=("self",), skip_locked=True)
    item_ids = list(rows.values_list("pk", flat=True))
    return Item.objects.filter(pk__in=item_ids).update(state=Item.State.CONFLICT)
