"""Pairs that everybody skipped: nobody is left who could get them, so an admin hands them to the adjudicators."""

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from annotation.models import Assignment, Membership
from corpus.collections.task_order import MEASURING
from corpus.models import Collection, Item


def skipped_by_all(collection: Collection) -> QuerySet[Item]:
    """Open items that somebody skipped, nobody works on, and no active member could get."""
    State = Assignment.State
    skipped = Assignment.objects.filter(membership__collection=collection, state=State.SKIPPED)
    lent = Assignment.objects.filter(item=OuterRef("pk"), state=State.OPEN)
    # Two levels out: the memberships of a subquery over items.
    had_it = Assignment.objects.filter(item=OuterRef(OuterRef("pk")), membership=OuterRef("pk"))
    left = Membership.objects.filter(collection=collection, is_active=True, user__is_active=True).filter(
        ~Exists(had_it.exclude(state=State.RETURNED))
    )
    waiting = Item.objects.filter(collection=collection, state=Item.State.OPEN, taken__lt=F("overlap"))
    waiting = waiting.exclude(reason__in=MEASURING)
    return waiting.filter(~Exists(lent), ~Exists(left), pk__in=skipped.values("item"))


@transaction.atomic
def hand_over(collection: Collection) -> int:
    """Turn items that everybody skipped into conflicts for adjudicators; return their number."""
    # Locked items are being decided on at this moment, so they are not stuck.
    rows = skipped_by_all(collection).select_for_update(of=("self",), skip_locked=True)
    found = list(rows.values_list("pk", flat=True))
    return Item.objects.filter(pk__in=found).update(state=Item.State.CONFLICT)
