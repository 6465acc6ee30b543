"""Conflicts: what people could not settle, or flagged, and the senior decision on it."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Mod
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.auditing import record
from annotation.exports.snapshots import used_since
from annotation.models import Assignment, Membership
from annotation.policies.waking import UNCERTAIN, go_on
from annotation.queue import SHARDS, Lost, Unknown, arm_of, settled_key
from annotation.settling import UNDO_WITHIN, why_not_undo
from annotation.undo import unsettle
from corpus.labels import resolve_pairs
from corpus.models import Item, Judgment
from judges.models import Tally

SPREAD = 7919
"""A prime: each adjudicator begins elsewhere, so two of them rarely meet on one conflict without any lease."""


def conflicts(membership: Membership) -> QuerySet[Item]:
    """Conflicts that this adjudicator may decide: never one that they judged or hold. Their own fixed order."""
    theirs = Assignment.objects.filter(item=OuterRef("pk"), membership=membership).exclude(
        state__in=[Assignment.State.RETURNED, Assignment.State.SKIPPED]
    )
    turn = Mod(F("pk") + Value(membership.pk * 31), Value(SPREAD), output_field=IntegerField())
    return (
        Item.objects.filter(collection=membership.collection_id, state=Item.State.CONFLICT)
        .exclude(Exists(theirs))
        .annotate(turn=turn)
        .order_by("turn", "pk")
    )


def choose(waiting: QuerySet[Item], *, after: int | None = None, show: int | None = None) -> Item | None:
    """The conflict to show: `show` where it waits, else the first, or the one behind `after` (then from the start)."""
    if show is not None:
        return waiting.filter(pk=show).first() or waiting.first()
    left = waiting.filter(pk=after).first() if after is not None else None
    if left is None:
        return waiting.first()
    turn = left.turn  # type: ignore[attr-defined]
    return waiting.filter(Q(turn__gt=turn) | Q(turn=turn, pk__gt=left.pk)).first() or waiting.first()


def last_decision(membership: Membership) -> int | None:
    """The item of this adjudicator's newest standing decision, of the last 24 hours."""
    own = Judgment.objects.filter(
        assessor=membership.assessor_id, step=Judgment.Step.ADJUDICATION, superseded_by=None, grade__isnull=False
    )
    recent = own.filter(created_at__gt=timezone.now() - UNDO_WITHIN, item__state=Item.State.SETTLED)
    return recent.order_by("-pk").values_list("item_id", flat=True).first()


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one annotator left on an item, without a name. `grade` is None for a flag or a skip."""

    number: int
    grade: int | None
    comment: str
    flagged: bool
    note: str
    """Of a flag, or why it was skipped."""


def opinions(item: Item) -> list[Opinion]:
    """All that stands on the item, in an order that does not follow the annotators' names."""
    State = Assignment.State
    skipped = Q(state=State.SKIPPED)
    rows = (
        Assignment.objects.filter(item=item)
        .filter(Q(state=State.DONE, flagged=True) | Q(state=State.DONE, judgment__grade__isnull=False) | skipped)
        .select_related("judgment")
        .order_by("judgment__grade", "token")
    )
    return [_opinion(number, row) for number, row in enumerate(rows, 1)]


def _opinion(number: int, row: Assignment) -> Opinion:
    if row.state == Assignment.State.SKIPPED:
        return Opinion(number, None, "", False, row.get_skip_reason_display())
    if row.flagged or row.judgment is None:
        return Opinion(number, None, "", True, row.flag_note)
    return Opinion(number, row.judgment.grade, row.judgment.comment, False, "")


@transaction.atomic
def adjudicate(
    membership: Membership, item_id: int, grade: int, *, comment: str = "", milliseconds: int | None = None
) -> None:
    """Settle a conflict. The same decision sent again changes nothing; Lost when somebody else was first."""
    item = Item.objects.select_for_update().filter(pk=item_id, collection=membership.collection_id).first()
    if item is None:
        raise Unknown
    before = _chain(membership, item)
    if item.state == Item.State.SETTLED and before and before.grade == grade:
        return
    if not conflicts(membership).filter(pk=item.pk).exists():
        raise Lost(_("Another adjudicator settled this pair while you worked on it, or it is no conflict any more."))
    Judgment.objects.create(
        pair_id=item.pair_id,
        assessor_id=membership.assessor_id,
        item=item,
        step=Judgment.Step.ADJUDICATION,
        grade=grade,
        supersedes=before,
        arm=arm_of(item.reason),
        guideline=membership.collection.guideline_version,
        milliseconds=milliseconds,
        comment=comment,
    )
    record(membership.user, "conflict.settled", membership.collection, item=item.pk, grade=grade)
    Item.objects.filter(pk=item.pk).update(state=Item.State.SETTLED, settled_at=timezone.now())
    resolve_pairs([item.pair_id])
    if item.campaign is not None:
        _count_settled(item.campaign, membership.pk % SHARDS, settled_key(item.reason))
        if item.reason == UNCERTAIN:
            go_on(item.campaign)


@transaction.atomic
def undo_adjudication(membership: Membership, item_id: int) -> None:
    """Take one's own decision back: the pair is a conflict again."""
    item = Item.objects.select_for_update().filter(pk=item_id, collection=membership.collection_id).first()
    decision = _chain(membership, item) if item else None
    if item is None or decision is None or decision.grade is None or item.state != Item.State.SETTLED:
        raise Unknown
    exported = used_since(item.collection_id, decision.created_at)
    reason = why_not_undo(now=timezone.now(), ended_at=decision.created_at, exported=exported)
    if reason:
        raise Lost(reason)
    Judgment.objects.create(
        pair_id=item.pair_id,
        assessor_id=membership.assessor_id,
        item=item,
        step=Judgment.Step.ADJUDICATION,
        grade=None,
        supersedes=decision,
    )
    record(membership.user, "conflict.undone", membership.collection, item=item.pk)
    Item.objects.filter(pk=item.pk).update(state=Item.State.CONFLICT, settled_at=None)
    unsettle(item, shard=membership.pk % SHARDS)


def _chain(membership: Membership, item: Item) -> Judgment | None:
    """The adjudicator's newest row on the item: a decision, or its withdrawal."""
    return Judgment.objects.filter(
        item=item, assessor=membership.assessor_id, step=Judgment.Step.ADJUDICATION, superseded_by=None
    ).first()


def _count_settled(campaign: int, shard: int, key: str) -> None:
    row, _ = Tally.objects.get_or_create(campaign_id=campaign, shard=shard, key=key)
    Tally.objects.filter(pk=row.pk).update(value=F("value") + 1)
