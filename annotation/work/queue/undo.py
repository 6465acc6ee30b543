"""Undoing a decision: its withdrawal is a row, and its author's lease is open again."""

from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership, new_token
from annotation.work.queue.aggregation import why_not_undo
from annotation.work.queue.annotators import closed, why_closed
from annotation.work.queue.assignment import (
    EVIDENCE,
    SHARDS,
    DecisionRefused,
    in_transaction,
    resolved_counter,
)
from corpus.collections.task_order import MEASURING, forget_watermarks, next_place
from corpus.evidence import targets
from corpus.holding import hold
from corpus.labels import resolve_pairs
from corpus.models import CurrentJudgment, ExportRecord, Item, Judgment
from judges.costs import counters
from store.sql import execute, read_sql


def undo_decision(membership: Membership, item: int) -> None:
    """Undo a decision, in the reveal arm the final judgment first. Raises Http404, and DecisionRefused with the reason.

    1. Lock the assignment and the member's open leases.
    2. Undo a blind judgment by itself: its lease stays open, with the debate hidden again.
    3. Lock the items, refuse what can no longer be undone, and return the lease claimed by the decision.
    4. Open the assignment again, and forget the member's watermark.
    """
    in_transaction(lambda _db: _undo_once(membership, item))


def _undo_once(membership: Membership, item_id: int) -> None:
    if refusal := why_closed(closed(membership)):
        raise DecisionRefused(refusal)
    # The assignment to undo, and the open leases, one of which was claimed together with its decision.
    locked = Assignment.objects.select_for_update().filter(membership=membership).order_by("pk")
    leases = {row.item_id: row for row in locked.filter(Q(item=item_id) | Q(state=Assignment.State.OPEN))}
    own = leases.pop(item_id, None)
    if own is not None and own.state == Assignment.State.OPEN and own.first and own.first.grade is not None:
        # The debate is hidden again, but its author has seen it, so the next first judgment does not count as blind.
        first = own.first
        exported = ExportRecord.is_exported(membership.collection_id, first.created_at)
        if reason := why_not_undo(now=timezone.now(), ended_at=first.created_at, exported=exported):
            raise DecisionRefused(reason)
        Assignment.objects.filter(pk=own.pk).update(first=withdraw_judgment(first), token=new_token(), served_at=Now())
        return
    if own is None or own.state not in (Assignment.State.DONE, Assignment.State.SKIPPED):
        raise Http404(_("You have no decision to undo."))
    # The lease claimed with this decision has the same place: 0 outside a group.
    leases = {item: row for item, row in leases.items() if row.place == own.place}
    # In the order of their ids, so that two people who undo at the same moment never wait for each other.
    items = {row.pk: row for row in Item.objects.select_for_update().filter(pk__in=[item_id, *leases]).order_by("pk")}
    if reason := refuse_undo(own, items[item_id]):
        raise DecisionRefused(reason)
    for lease in leases.values():
        give_back(lease, items[lease.item_id])
    item = items[item_id]
    is_graded = own.state == Assignment.State.DONE and own.judgment is not None and own.judgment.grade is not None
    withdrawal = withdraw_judgment(own.judgment) if is_graded and own.judgment else own.judgment_id
    has_texts = item.reason == EVIDENCE and own.state == Assignment.State.DONE and not own.flagged
    if has_texts:
        targets.withdraw(item, membership.assessor.name)
    Assignment.objects.filter(pk=own.pk).update(
        state=Assignment.State.OPEN,
        token=new_token(),
        judgment=withdrawal,
        lease_until=timezone.now() + timedelta(minutes=membership.collection.lease_minutes),
        served_at=Now(),
        ended_at=None,
        skip_reason="",
        flagged=False,
    )
    # The item stays with the adjudicators if another person flagged it.
    has_flag = Assignment.objects.filter(item=item, flagged=True, state=Assignment.State.DONE).exists()
    Item.objects.filter(pk=item.pk).update(
        taken=F("taken") + int(own.state == Assignment.State.SKIPPED),
        done=F("done") - int(is_graded or has_texts),
        state=item.state if item.state == Item.State.STANDING else Item.State.CONFLICT if has_flag else Item.State.OPEN,
        settled_at=None,
    )
    if item.state == Item.State.SETTLED:
        revert_resolution(item, shard=membership.pk % SHARDS)
    # The reopened item may lie below the watermark.
    Membership.objects.filter(pk=membership.pk).update(watermark_priority=None, watermark_place=None)


def may_undo(membership: Membership, item: int) -> bool:
    """Return whether the member has a decision on the item that they can undo now."""
    own = Assignment.objects.filter(membership=membership, item=item).select_related("item", "first").first()
    if own is None or why_closed(closed(membership)):
        return False
    if own.state == Assignment.State.OPEN:
        return own.first is not None and own.first.grade is not None
    return own.state in (Assignment.State.DONE, Assignment.State.SKIPPED) and refuse_undo(own, own.item) is None


def refuse_undo(own: Assignment, item: Item) -> str | None:
    """Explain why a decision can no longer be undone; None when it can."""
    if own.state == Assignment.State.SKIPPED:
        if item.state not in (Item.State.OPEN, Item.State.STANDING) or item.taken >= item.overlap:
            return _("Other people are judging this pair now.")
        return why_not_undo(now=timezone.now(), ended_at=own.ended_at or own.lent_at)
    judgments = CurrentJudgment.objects.filter(item=item).exclude(step=Judgment.Step.FIRST)
    later = judgments.exclude(assessor=own.membership.assessor_id).filter(pk__gt=own.judgment_id or 0)
    ended_at = own.ended_at or own.lent_at
    return why_not_undo(
        now=timezone.now(),
        ended_at=ended_at,
        adjudicated=judgments.filter(step=Judgment.Step.ADJUDICATION).exists(),
        settled_by_another=item.state == Item.State.SETTLED and later.exists(),
        exported=ExportRecord.is_exported(item.collection_id, ended_at),
    )


_RELEASE = read_sql(__file__, "release_reserved")


def end_lease(membership: Membership) -> None:
    """Return a member's open leases and reserved items to the queue. Call it in a transaction."""
    leases = Assignment.objects.select_for_update().filter(membership=membership, state=Assignment.State.OPEN)
    # By item, so that two people with pairs of one query who are paused at once lock the items in the same order.
    for lease in leases.order_by("item"):
        give_back(lease, hold(Item.objects, lease.item_id))
    # Items of studies and repeats stay reserved: nobody else may get them.
    if execute(_RELEASE, membership=membership.pk, measuring=list(MEASURING)):
        forget_watermarks(membership.collection)


def give_back(lease: Assignment, item: Item) -> None:
    """Return an unfinished lease to the queue at a new place. Its holder may get the item again."""
    # The assignment stays, with the draft of its holder.
    Assignment.objects.filter(pk=lease.pk).update(state=Assignment.State.RETURNED, ended_at=timezone.now())
    Item.objects.filter(pk=item.pk).update(taken=F("taken") - 1, place=next_place())


def withdraw_judgment(judgment: Judgment) -> int:
    """Append the row that withdraws a judgment, and return its id."""
    return Judgment.objects.create(
        pair_id=judgment.pair_id,
        assessor_id=judgment.assessor_id,
        item_id=judgment.item_id,
        step=judgment.step,
        grade=None,
        supersedes=judgment,
    ).pk


def revert_resolution(item: Item, *, shard: int) -> None:
    """Withdraw the label of an item that is no longer resolved, and subtract it from its campaign's counter."""
    resolve_pairs([item.pair_id])
    if item.campaign is not None:
        counters.add(item.campaign, resolved_counter(item.reason), -1, on=shard)
