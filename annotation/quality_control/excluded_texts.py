"""Edited texts (contribution and evidence) that leave with a person's judgments, and come back with them.

As with judgments, rows are only added: one that withdraws a text, later the text once more under a new version.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from annotation.judging.evidence import next_version
from annotation.models import Assignment, Membership
from corpus.evidence.targets import SET_ASIDE
from corpus.models import Target

State = Assignment.State


def standing(
    membership: Membership, *, since: datetime | None = None, items: Sequence[int] | None = None
) -> QuerySet[Target]:
    """Texts of this person that hold or could: not withdrawn. `items`: only those written on these items."""
    found = Target.objects.filter(
        pair__collection=membership.collection_id,
        kind=Target.Kind.PERSON,
        writer=membership.assessor.name,
        item__isnull=False,
        withdraws=None,
        withdrawn_by=None,
    )
    if since:
        found = found.filter(created_at__gte=since)
    return found if items is None else found.filter(item__in=items)


def withdraw(membership: Membership, texts: Iterable[Target]) -> list[Target]:
    """Append what withdraws them; nobody goes on with such a text. The pairs are locked."""
    return [
        Target.objects.create(
            pair_id=one.pair_id,
            version=next_version(one.pair_id),
            kind=Target.Kind.PERSON,
            writer=membership.assessor.name,
            measures=SET_ASIDE,
            good=False,
            item_id=one.item_id,
            withdraws=one,
        )
        for one in texts
    ]


def again(withdrawals: Iterable[int]) -> list[Target]:
    """The texts once more. Where somebody has written another one meanwhile, theirs holds, and nothing is appended."""
    others = Target.objects.filter(
        pair=OuterRef("pair"), kind=Target.Kind.PERSON, good=True, withdraws=None, withdrawn_by=None
    )
    gone = Target.objects.filter(pk__in=list(withdrawals)).exclude(Exists(others)).select_related("withdraws")
    back = []
    for row in gone.order_by("pk"):
        text = row.withdraws
        if text is not None:
            text.pk, text.version, text._state.adding = None, next_version(text.pair_id), True
            text.save(force_insert=True)
            back.append(text)
    return back


def move(membership: Membership, texts: Sequence[Target], before: State, after: State) -> list[int]:
    """The assignments on whose desk they were written carry the new state; ids of their items."""
    mine = Assignment.objects.filter(membership=membership, item__in=[one.item_id for one in texts], state=before)
    items = list(mine.select_for_update().values_list("item", flat=True))
    Assignment.objects.filter(membership=membership, item__in=items).update(state=after)
    return items
