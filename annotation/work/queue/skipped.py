"""Pairs that everybody skipped: no annotator can get them any more, so an admin hands them to the adjudicators."""

from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from annotation.models import Assignment, Membership, Role
from corpus.collections.task_order import MEASURING
from corpus.models import Collection, Item

KEPT_S = 60


def skipped_by_all(collection: Collection) -> QuerySet[Item]:
    """Return the open items that were skipped, that nobody works on, and that no active member can get."""
    State = Assignment.State
    skipped = Assignment.objects.filter(membership__collection=collection, state=State.SKIPPED)
    open_leases = Assignment.objects.filter(item=OuterRef("pk"), state=State.OPEN)
    # Two levels out: assignments of a member (the inner query) on an item (the outer query).
    earlier = Assignment.objects.filter(item=OuterRef(OuterRef("pk")), membership=OuterRef("pk"))
    candidates = Membership.objects.filter(collection=collection, is_active=True, user__is_active=True).filter(
        ~Exists(earlier.exclude(state=State.RETURNED)), role__gte=Role.ANNOTATOR
    )
    open_items = Item.objects.filter(collection=collection, state=Item.State.OPEN, taken__lt=F("overlap"))
    open_items = open_items.exclude(reason__in=MEASURING)
    return open_items.filter(~Exists(open_leases), ~Exists(candidates), pk__in=skipped.values("item"))


def count_recently(collection: Collection) -> int:
    """Count them, for pages that poll: the count may be KEPT_S seconds old, since it reads every skipped assignment."""
    count = cache.get(_key(collection))
    if count is None:
        count = skipped_by_all(collection).count()
        cache.set(_key(collection), count, KEPT_S)
    return int(count)


def _key(collection: Collection) -> str:
    return f"skipped-by-all:{collection.pk}"


@transaction.atomic
def hand_over(collection: Collection) -> int:
    """Turn the items that everybody skipped into conflicts for adjudicators; return how many there were."""
    # Somebody is deciding on a locked item at this moment, so it is not stuck.
    rows = skipped_by_all(collection).select_for_update(of=("self",), skip_locked=True)
    item_ids = list(rows.values_list("pk", flat=True))
    cache.delete(_key(collection))
    return Item.objects.filter(pk__in=item_ids).update(state=Item.State.CONFLICT)
