"""Exclude and reinstate a member's judgments; pause and resume members.

An exclusion appends a withdrawal for each judgment, as an undo by its author would, so labels,
statistics, agreement and exports leave it out without knowing about exclusions. A reinstatement
appends the judgment once more, with its original time. No row is changed or deleted;
annotation.models.quality_control.JudgmentExclusion lists the rows that were appended. Texts that a
person edited (contribution and evidence) are excluded and reinstated with their judgments.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import BigIntegerField, Exists, F, Func, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Membership, User
from annotation.models.quality_control import JudgmentExclusion
from annotation.work.queue.aggregation import aggregate_judgments
from annotation.work.queue.assignment import EVIDENCE, SHARDS, resolved_counter
from annotation.work.queue.statements import one_array
from annotation.work.queue.undo import end_lease
from corpus.collections.task_order import MEASURING, forget_watermarks
from corpus.errors import BadInput
from corpus.evidence.targets import SET_ASIDE, next_version
from corpus.holding import hold
from corpus.labels import resolve_pairs
from corpus.models import CurrentJudgment, Item, Judgment, Pair, Query, Target
from judges.costs import counters
from store.sql import fetch_rows, read_sql

Step = Judgment.Step
_WITHDRAW = read_sql(__file__, "withdraw_judgments")
_RESTORE = read_sql(__file__, "restore_judgments")
_UPDATE_ASSIGNMENTS = read_sql(__file__, "update_assignments")
# One update of each item, because its counts and its state are in the same indexes.
_UPDATE_ITEMS = """
UPDATE corpus_item i SET taken = new.taken, done = new.done, overlap = new.overlap, state = new.state,
    settled_at = CASE WHEN new.state = i.state THEN i.settled_at WHEN new.state = 'settled' THEN %s END
FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::int[], %s::text[]) AS new (id, taken, done, overlap, state)
WHERE i.id = new.id"""


class JudgmentKeys(NamedTuple):
    """The keys of a judgment; only these, since thousands of rows are read at once."""

    pk: int
    pair_id: int
    item_id: int | None
    aspect_id: int | None
    step: str


class LockedItem(NamedTuple):
    """Columns of a locked item."""

    pk: int
    pair_id: int
    campaign: int | None
    reason: str
    state: str
    overlap: int
    taken: int
    done: int


@transaction.atomic
def pause(*, membership: Membership, by: User | None, note: str = "") -> None:
    """Pause a member: their open tasks return to the queue, their judgments stay."""
    end_lease(membership)
    record(by, "member.paused", membership.collection, concerns=membership.user, note=note)
    Membership.objects.filter(pk=membership.pk).update(paused_at=timezone.now(), pause_note=note)


@transaction.atomic
def resume(*, membership: Membership, by: User | None) -> None:
    """Resume a paused member, who gets tasks again."""
    record(by, "member.resumed", membership.collection, concerns=membership.user)
    Membership.objects.filter(pk=membership.pk).update(paused_at=None, pause_note="")


def current_judgments(membership: Membership, *, since: datetime | None = None) -> QuerySet[Judgment]:
    """Return the member's current judgments, which an exclusion would withdraw."""
    judgments = CurrentJudgment.objects.filter(
        Q(item__isnull=False) | Q(aspect__isnull=False), assessor=membership.assessor_id
    )
    if since:
        judgments = judgments.filter(created_at__gte=since)
    return Judgment.objects.filter(pk__in=judgments.values("pk"))


@transaction.atomic
def exclude_judgments(
    *,
    membership: Membership,
    by: User | None,
    note: str = "",
    since: datetime | None = None,
    batch: int | None = None,
    items: Sequence[int] | None = None,
) -> JudgmentExclusion:
    """Exclude a member's judgments and texts; their items return to the queue, for other people.

    `since`: only those from this time on. `items`: only those on these items, which are the items of
    the member's batch `batch`. Raises BadInput where there is nothing to exclude.
    """
    _hold_aspects(membership)
    excluded = current_judgments(membership, since=since)
    judgments = _read_keys(excluded.filter(item__in=one_array(items)) if items is not None else excluded)
    texts = list(current_texts(membership, since=since, items=items).order_by("pk"))
    if not judgments and not texts:
        raise BadInput(_("Nothing to exclude: this person has no active judgments"))
    locked = _lock_items([*judgments, *texts])
    rows = [JudgmentKeys(*row) for row in fetch_rows(_WITHDRAW, judgments=[judgment.pk for judgment in judgments])]
    # The version numbers are safe, because the pairs of the texts are locked.
    withdrawn = [
        Target.objects.create(
            pair_id=text.pair_id,
            version=next_version(text.pair_id),
            kind=Target.Kind.PERSON,
            writer=membership.assessor.name,
            measures=SET_ASIDE,
            good=False,
            item_id=text.item_id,
            withdraws=text,
        )
        for text in texts
    ]
    excluded_items = _update_assignments(membership, rows, Assignment.State.DONE, Assignment.State.ASIDE)
    excluded_items |= _move_texts(membership, texts, Assignment.State.DONE, Assignment.State.ASIDE)
    # The new counts follow from the locked rows and are written once.
    counted = [
        item._replace(taken=item.taken - 1, done=item.done - 1) if item.pk in excluded_items else item
        for item in locked
    ]
    why = JudgmentExclusion.Why.PERSON if batch is None else JudgmentExclusion.Why.BATCH
    act = JudgmentExclusion(membership=membership, why=why, note=note, batch=batch, since=since, made_by=by)
    _store_act(act, rows, withdrawn, locked, counted)
    # Last, because a submit also locks the campaign's counters before the watermarks.
    forget_watermarks(membership.collection)
    counts = {"n": len(rows), "texts": len(withdrawn)}
    record(by, "judgments.aside", membership.collection, concerns=membership.user, **counts, why=why.value)
    return act


@transaction.atomic
def reinstate_judgments(*, act: JudgmentExclusion, by: User | None) -> JudgmentExclusion:
    """Reinstate the judgments and texts of an exclusion. Raises BadInput where they are reinstated already.

    Where somebody else has judged the item in the meantime, both judgments count, and an adjudicator
    decides if they differ. A text is not reinstated over a newer one by somebody else.
    """
    membership = hold(Membership.objects.select_related("collection", "user"), act.membership_id)
    if act.is_reinstatement or JudgmentExclusion.objects.filter(reverses=act).exists():
        raise BadInput(_("These judgments have already been reinstated"))
    _hold_aspects(membership)
    # The member need not be told about this returned batch any more.
    if act.why == JudgmentExclusion.Why.BATCH:
        Membership.objects.filter(pk=membership.pk).update(returned=Greatest(F("returned") - 1, 0))
    reinstatement = JudgmentExclusion(why=act.why, batch=act.batch, since=act.since, made_by=by, reverses=act)
    return _reinstate(membership, reinstatement, act.judgments, act.texts)


@transaction.atomic
def reinstate_items(*, membership: Membership, by: User | None, items: Sequence[int]) -> JudgmentExclusion:
    """Reinstate a member's excluded judgments and texts on these items, whichever acts excluded them."""
    membership = hold(Membership.objects.select_related("collection", "user"), membership.pk)
    acts = JudgmentExclusion.objects.filter(membership=membership, reverses=None, reversed_by=None)
    # Acts on pairs are reinstatements themselves, so they have no rows to reinstate.
    acts = acts.exclude(why=JudgmentExclusion.Why.PAIRS)
    judgments = Judgment.objects.filter(item__in=one_array(items), pk__in=acts.values(element=Unnest("judgments")))
    texts = Target.objects.filter(item__in=one_array(items), pk__in=acts.values(element=Unnest("texts")))
    reinstatement = JudgmentExclusion(why=JudgmentExclusion.Why.PAIRS, made_by=by)
    withdrawals = (list(rows.values_list("pk", flat=True)) for rows in (judgments, texts))
    return _reinstate(membership, reinstatement, *withdrawals)


class Unnest(Func):
    """The SQL function `unnest`: one row for each element of an array."""

    function = "unnest"
    output_field = BigIntegerField()


def _reinstate(
    membership: Membership, act: JudgmentExclusion, withdrawals: Sequence[int], text_withdrawals: Sequence[int]
) -> JudgmentExclusion:
    """Append the judgments and texts that these rows withdrew once more, and store the act with the new rows."""
    # Heads only: a newer row that supersedes the withdrawal stays valid.
    reinstated = _read_keys(Judgment.objects.heads().filter(pk__in=one_array(withdrawals)))
    locked = _lock_items([*reinstated, *Target.objects.filter(pk__in=text_withdrawals)])
    rows = [JudgmentKeys(*row) for row in fetch_rows(_RESTORE, judgments=[withdrawal.pk for withdrawal in reinstated])]
    # A text stays withdrawn where somebody has written another one in the meantime.
    newer_texts = Target.objects.filter(
        pair=OuterRef("pair"), kind=Target.Kind.PERSON, good=True, withdraws=None, withdrawn_by=None
    )
    withdrawn = Target.objects.filter(pk__in=list(text_withdrawals), withdraws__isnull=False)
    withdrawn = withdrawn.exclude(Exists(newer_texts))
    texts = [row.withdraws for row in withdrawn.select_related("withdraws").order_by("pk") if row.withdraws]
    for text in texts:
        # History is append-only, so the text becomes a new row: `_state.adding` makes Django insert it.
        text.pk, text.version, text._state.adding = None, next_version(text.pair_id), True
        text.save(force_insert=True)
    items = _update_assignments(membership, rows, Assignment.State.ASIDE, Assignment.State.DONE)
    items |= _move_texts(membership, texts, Assignment.State.ASIDE, Assignment.State.DONE)
    counted = [
        # Another person may have judged the item in the meantime: it then has one judgment more than its overlap.
        item._replace(taken=item.taken + 1, done=item.done + 1, overlap=max(item.overlap, item.taken + 1))
        if item.pk in items
        else item
        for item in locked
    ]
    counts = {"n": len(rows), "texts": len(texts)}
    record(act.made_by, "judgments.back", membership.collection, concerns=membership.user, **counts)
    act.membership = membership
    _store_act(act, rows, texts, locked, counted)
    return act


def _read_keys(judgments: QuerySet[Judgment]) -> list[JudgmentKeys]:
    return [JudgmentKeys(*row) for row in judgments.order_by("pk").values_list(*JudgmentKeys._fields)]


def _store_act(
    act: JudgmentExclusion,
    rows: Sequence[JudgmentKeys],
    texts: Sequence[Target],
    locked: Sequence[LockedItem],
    counted: Sequence[LockedItem],
) -> None:
    """Update items (from `locked` to `counted`), labels and counters after the new rows of an act; store the act."""
    # Store the items' new counts and the states that follow from their judgments; update the campaigns' counters.
    shard = act.membership_id % SHARDS
    ids = one_array(item.pk for item in locked)
    grades: dict[int, list[int]] = defaultdict(list)
    adjudicated = set()
    for item_id, step, grade in CurrentJudgment.objects.filter(
        item__in=ids, step__in=[Step.FINAL, Step.ADJUDICATION]
    ).values_list("item_id", "step", "grade"):
        if step == Step.ADJUDICATION:
            adjudicated.add(item_id)
        elif item_id is not None:
            grades[item_id].append(grade)
    flags = Assignment.objects.filter(item__in=ids, flagged=True, state=Assignment.State.DONE)
    flagged = set(flags.values_list("item_id", flat=True))
    resolved_changes: dict[tuple[int, str], int] = defaultdict(int)
    changed = []
    for before, now in zip(locked, counted, strict=True):
        state = _item_state(now, grades[now.pk], now.pk in flagged, now.pk in adjudicated)
        if state != now.state or now != before:
            changed.append((now.pk, now.taken, now.done, now.overlap, state))
        # Items that measure people are no part of a campaign's progress.
        if state != now.state and now.campaign is not None and now.reason not in MEASURING:
            change = int(state == Item.State.SETTLED) - int(now.state == Item.State.SETTLED)
            resolved_changes[now.campaign, resolved_counter(now.reason)] += change
    if changed:
        with connection.cursor() as cursor:
            cursor.execute(_UPDATE_ITEMS, [timezone.now(), *map(list, zip(*changed, strict=True))])
    for (campaign, key), change in resolved_changes.items():
        counters.add(campaign, key, change, on=shard)
    aspects = {row.pair_id for row in rows if row.aspect_id is not None}
    resolve_pairs({item.pair_id for item in locked} | aspects)
    act.judgments, act.texts = [row.pk for row in rows], [text.pk for text in texts]
    act.save(force_insert=True)


def _hold_aspects(membership: Membership) -> None:
    """Lock the queries whose aspects this person graded, so that nobody revises the aspects in the meantime."""
    graded = Judgment.objects.filter(assessor=membership.assessor_id, aspect__isnull=False).values("aspect__query")
    # Before the items and in this order, as revisions of aspects lock them too.
    list(Query.objects.select_for_update(no_key=True).filter(pk__in=graded).order_by("pk").values_list("pk"))


def _lock_items(rows: Sequence[JudgmentKeys | Target]) -> list[LockedItem]:
    """Lock the items of judgments and texts in the order of their ids, as the queue does; then their pairs."""
    ids = {row.item_id for row in rows if row.item_id is not None}
    items = Item.objects.select_for_update().filter(pk__in=one_array(ids)).order_by("pk")
    locked = [LockedItem(*row) for row in items.values_list(*LockedItem._fields)]
    pairs = one_array({row.pair_id for row in rows})
    # `no_key`, since inserts of rows that refer to the pairs need not wait.
    list(Pair.objects.select_for_update(no_key=True).filter(pk__in=pairs).order_by("pk").values_list("pk"))
    return locked


def _update_assignments(
    membership: Membership, rows: Sequence[JudgmentKeys], before: Assignment.State, after: Assignment.State
) -> set[int]:
    """Set the new rows and the new state of the assignments; return the items of those whose state changed."""
    own = [(row.item_id, row.pk, row.step) for row in rows if row.item_id is not None]
    items, judgments, steps = map(list, zip(*own, strict=True)) if own else ([], [], [])
    values: dict[str, Any] = {"items": items, "judgments": judgments, "steps": steps, "membership": membership.pk}
    values |= {"before": before.value, "after": after.value}
    return {item for item, has_moved in fetch_rows(_UPDATE_ASSIGNMENTS, **values) if has_moved}


def _item_state(item: LockedItem, grades: list[int], flagged: bool, adjudicated: bool) -> str:
    if item.state in (Item.State.WITHDRAWN, Item.State.STANDING):
        return item.state
    if adjudicated:
        return Item.State.SETTLED
    if item.reason == EVIDENCE and not flagged:
        return Item.State.SETTLED if item.done >= item.overlap else Item.State.OPEN
    if item.reason in MEASURING:
        # Items that measure people need no agreement between them.
        return Item.State.SETTLED if len(grades) >= item.overlap else Item.State.OPEN
    state, _grade = aggregate_judgments(grades, overlap=item.overlap, flagged=flagged)
    return state


def current_texts(
    membership: Membership, *, since: datetime | None = None, items: Sequence[int] | None = None
) -> QuerySet[Target]:
    """Return the member's current texts; with `items`, only those on these items."""
    targets = Target.objects.filter(
        pair__collection=membership.collection_id,
        kind=Target.Kind.PERSON,
        writer=membership.assessor.name,
        item__isnull=False,
        withdraws=None,
        withdrawn_by=None,
    )
    if since:
        targets = targets.filter(created_at__gte=since)
    return targets if items is None else targets.filter(item__in=one_array(items))


def _move_texts(
    membership: Membership, texts: Sequence[Target], before: Assignment.State, after: Assignment.State
) -> set[int]:
    """Set the new state of the assignments with these texts, and return their items."""
    assignments = Assignment.objects.filter(
        membership=membership, item__in=[text.item_id for text in texts], state=before
    )
    # Locked before the update, in the same order as by other writers of assignments.
    items = list(assignments.select_for_update().values_list("item", flat=True))
    Assignment.objects.filter(membership=membership, item__in=items).update(state=after)
    return set(items)
