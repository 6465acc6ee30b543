"""Judgments set aside and brought back; people paused and let go on.

Setting aside appends a withdrawal for each judgment, as its author's undo would: so labels,
statistics, agreement and exports leave it out without knowing of it. Bringing back appends the
judgment once more, with its own time. Nothing is changed or deleted, and which rows an act appended
stands in annotation.models.quality_control.JudgmentExclusion. Edited texts (contribution and
evidence) leave with a person's judgments in the same way, and come back with them.
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
from judges.campaigns import counters
from store.sql import fetch_rows, read_sql

Step = Judgment.Step
_READ = ("pk", "pair_id", "item_id", "aspect_id", "step")  # Of a JudgmentKeys.
_WITHDRAW = read_sql(__file__, "withdraw_judgments")
_RESTORE = read_sql(__file__, "restore_judgments")
_UPDATE_ASSIGNMENTS = read_sql(__file__, "update_assignments")
# One write of each item: its counts and its state stand in the same indexes.
_UPDATE_ITEMS = """
UPDATE corpus_item i SET taken = new.taken, done = new.done, overlap = new.overlap, state = new.state,
    settled_at = CASE WHEN new.state = i.state THEN i.settled_at WHEN new.state = 'settled' THEN %s END
FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::int[], %s::text[]) AS new (id, taken, done, overlap, state)
WHERE i.id = new.id"""


class JudgmentKeys(NamedTuple):
    """A judgment's keys, small since thousands are read and appended at once."""

    pk: int
    pair_id: int
    item_id: int | None
    aspect_id: int | None
    step: str


class LockedItem(NamedTuple):
    """An item's columns, read while its row was locked."""

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
    """Pause a member: tasks they hold go back to the queue, their judgments stay."""
    end_lease(membership)
    record(by, "member.paused", membership.collection, concerns=membership.user, note=note)
    Membership.objects.filter(pk=membership.pk).update(paused_at=timezone.now(), pause_note=note)


@transaction.atomic
def go_on(*, membership: Membership, by: User | None) -> None:
    """Let a paused member get tasks again."""
    record(by, "member.resumed", membership.collection, concerns=membership.user)
    Membership.objects.filter(pk=membership.pk).update(paused_at=None, pause_note="")


def current_judgments(membership: Membership, *, since: datetime | None = None) -> QuerySet[Judgment]:
    """Return the member's active judgments that an exclusion would withdraw."""
    kept = CurrentJudgment.objects.filter(
        Q(item__isnull=False) | Q(aspect__isnull=False), assessor=membership.assessor_id
    )
    return Judgment.objects.filter(pk__in=(kept.filter(created_at__gte=since) if since else kept).values("pk"))


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
    """Exclude a member's judgments and texts from everything; their items go back to the queue, to other people.

    `since`: only those given from then on. `items`: only those on these items (`batch` says which
    batch they are). Raises BadInput where nothing stands that could be set aside.
    """
    _hold_aspects(membership)
    wanted = current_judgments(membership, since=since)
    found = _read_keys(wanted.filter(item__in=one_array(items)) if items is not None else wanted)
    texts = list(current_texts(membership, since=since, items=items).order_by("pk"))
    if not found and not texts:
        raise BadInput(_("Nothing to exclude: this person has no active judgments"))
    locked = _lock_items([*found, *texts])
    rows = [JudgmentKeys(*row) for row in fetch_rows(_WITHDRAW, judgments=[one.pk for one in found])]
    # Nobody goes on with a withdrawn text; their pairs are locked.
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
    left = _update_assignments(membership, rows, Assignment.State.DONE, Assignment.State.ASIDE)
    left |= _move_texts(membership, texts, Assignment.State.DONE, Assignment.State.ASIDE)
    # Counts are worked out here and written once, from the items as they were locked.
    counted = [one._replace(taken=one.taken - 1, done=one.done - 1) if one.pk in left else one for one in locked]
    why = JudgmentExclusion.Why.PERSON if batch is None else JudgmentExclusion.Why.BATCH
    act = JudgmentExclusion(membership=membership, why=why, note=note, batch=batch, since=since, made_by=by)
    _store_act(act, rows, withdrawn, locked, counted)
    # Only now: a submit, too, locks the campaign's counters before the watermarks.
    forget_watermarks(membership.collection)
    counts = {"n": len(rows), "texts": len(withdrawn)}
    record(by, "judgments.aside", membership.collection, concerns=membership.user, **counts, why=why.value)
    return act


@transaction.atomic
def reinstate_judgments(*, act: JudgmentExclusion, by: User | None) -> JudgmentExclusion:
    """Reinstate what an act set aside, as it was. Raises BadInput when that was done already.

    Where somebody else judged the item meanwhile, both judgments count: where they differ, an
    adjudicator decides. Of two texts one must hold: that of whoever wrote meanwhile.
    """
    membership = hold(Membership.objects.select_related("collection", "user"), act.membership_id)
    if act.is_reinstatement or JudgmentExclusion.objects.filter(reverses=act).exists():
        raise BadInput(_("These judgments have already been reinstated"))
    _hold_aspects(membership)
    if act.why == JudgmentExclusion.Why.BATCH:  # there is nothing to tell any more
        Membership.objects.filter(pk=membership.pk).update(returned=Greatest(F("returned") - 1, 0))
    back = JudgmentExclusion(why=act.why, batch=act.batch, since=act.since, made_by=by, reverses=act)
    return _bring_back(membership, back, act.judgments, act.texts)


@transaction.atomic
def reinstate_items(*, membership: Membership, by: User | None, items: Sequence[int]) -> JudgmentExclusion:
    """Reinstate what was excluded of a person's judgments and texts on these items, whichever acts excluded them."""
    membership = hold(Membership.objects.select_related("collection", "user"), membership.pk)
    acts = JudgmentExclusion.objects.filter(membership=membership, reverses=None, reversed_by=None)
    # Acts by pairs reinstate and exclude nothing, so they have no rows to bring back.
    acts = acts.exclude(why=JudgmentExclusion.Why.PAIRS)
    judgments = Judgment.objects.filter(item__in=one_array(items), pk__in=acts.values(one=Unnest("judgments")))
    texts = Target.objects.filter(item__in=one_array(items), pk__in=acts.values(one=Unnest("texts")))
    back = JudgmentExclusion(why=JudgmentExclusion.Why.PAIRS, made_by=by)
    withdrawals = (list(rows.values_list("pk", flat=True)) for rows in (judgments, texts))
    return _bring_back(membership, back, *withdrawals)


class Unnest(Func):
    """SQL `unnest`: the elements of an array, each in a row."""

    function = "unnest"
    output_field = BigIntegerField()


def _bring_back(
    membership: Membership, act: JudgmentExclusion, withdrawals: Sequence[int], text_withdrawals: Sequence[int]
) -> JudgmentExclusion:
    """Append what these rows withdrew once more, and store the act with the new rows."""
    # Heads only: a row that something superseded since is not brought back over it.
    gone = _read_keys(Judgment.objects.heads().filter(pk__in=one_array(withdrawals)))
    locked = _lock_items([*gone, *Target.objects.filter(pk__in=text_withdrawals)])
    rows = [JudgmentKeys(*row) for row in fetch_rows(_RESTORE, judgments=[one.pk for one in gone])]
    # Withdrawn texts once more, unless somebody has written another one meanwhile: theirs holds.
    others = Target.objects.filter(
        pair=OuterRef("pair"), kind=Target.Kind.PERSON, good=True, withdraws=None, withdrawn_by=None
    )
    withdrawn = Target.objects.filter(pk__in=list(text_withdrawals), withdraws__isnull=False).exclude(Exists(others))
    texts = [row.withdraws for row in withdrawn.select_related("withdraws").order_by("pk") if row.withdraws]
    for text in texts:
        # A copy of the text as a new row: history is append-only, and `_state.adding` makes Django insert it.
        text.pk, text.version, text._state.adding = None, next_version(text.pair_id), True
        text.save(force_insert=True)
    back = _update_assignments(membership, rows, Assignment.State.ASIDE, Assignment.State.DONE)
    back |= _move_texts(membership, texts, Assignment.State.ASIDE, Assignment.State.DONE)
    counted = [
        # Somebody may have taken the free place meanwhile: the item then has one judgment more than it asked for.
        one._replace(taken=one.taken + 1, done=one.done + 1, overlap=max(one.overlap, one.taken + 1))
        if one.pk in back
        else one
        for one in locked
    ]
    counts = {"n": len(rows), "texts": len(texts)}
    record(act.made_by, "judgments.back", membership.collection, concerns=membership.user, **counts)
    act.membership = membership
    _store_act(act, rows, texts, locked, counted)
    return act


def _read_keys(found: QuerySet[Judgment]) -> list[JudgmentKeys]:
    return [JudgmentKeys(*row) for row in found.order_by("pk").values_list(*_READ)]


def _store_act(
    act: JudgmentExclusion,
    rows: Sequence[JudgmentKeys],
    texts: Sequence[Target],
    locked: Sequence[LockedItem],
    counted: Sequence[LockedItem],
) -> None:
    """Let items (`locked`, and `counted` anew), labels and counters follow the rows of an act; store the act."""
    _update_items(locked, counted, shard=act.membership_id % SHARDS)
    aspects = {row.pair_id for row in rows if row.aspect_id is not None}
    resolve_pairs({item.pair_id for item in locked} | aspects)
    act.judgments, act.texts = [row.pk for row in rows], [text.pk for text in texts]
    act.save(force_insert=True)


def _hold_aspects(membership: Membership) -> None:
    """Lock the aspects under which this person graded, so that nobody revises them meanwhile."""
    graded = Judgment.objects.filter(assessor=membership.assessor_id, aspect__isnull=False).values("aspect__query")
    # Before the items, in the order that revisions of aspects lock in too.
    list(Query.objects.select_for_update(no_key=True).filter(pk__in=graded).order_by("pk").values_list("pk"))


def _lock_items(found: Sequence[JudgmentKeys | Target]) -> list[LockedItem]:
    """Lock items of judgments and texts by id, as the queue does; then their pairs."""
    ids = {one.item_id for one in found if one.item_id is not None}
    # The order of ids is the queue's own; two locks in different orders would be a deadlock.
    items = Item.objects.select_for_update().filter(pk__in=one_array(ids)).order_by("pk")
    locked = [LockedItem(*row) for row in items.values_list(*LockedItem._fields)]
    pairs = one_array({one.pair_id for one in found})
    # `no_key`, since only labels of the pairs change, and foreign keys to them must not wait.
    list(Pair.objects.select_for_update(no_key=True).filter(pk__in=pairs).order_by("pk").values_list("pk"))
    return locked


def _update_assignments(
    membership: Membership, rows: Sequence[JudgmentKeys], before: Assignment.State, after: Assignment.State
) -> set[int]:
    """Point the assignments to the new rows, in the new state; return the finished ones' items."""
    own = [(row.item_id, row.pk, row.step) for row in rows if row.item_id is not None]
    items, judgments, steps = map(list, zip(*own, strict=True)) if own else ([], [], [])
    values: dict[str, Any] = {"items": items, "judgments": judgments, "steps": steps, "membership": membership.pk}
    values |= {"before": before.value, "after": after.value}
    return {item for item, has_moved in fetch_rows(_UPDATE_ASSIGNMENTS, **values) if has_moved}


def _update_items(locked: Sequence[LockedItem], counted: Sequence[LockedItem], *, shard: int) -> None:
    """Store the items' new counts, with the state that follows from what stands on them; campaigns' counters follow."""
    ids = one_array(item.pk for item in locked)
    grades: dict[int, list[int]] = defaultdict(list)
    decided = set()
    for judged, step, grade in CurrentJudgment.objects.filter(
        item__in=ids, step__in=[Step.FINAL, Step.ADJUDICATION]
    ).values_list("item_id", "step", "grade"):
        if step == Step.ADJUDICATION:
            decided.add(judged)
        elif judged is not None:
            grades[judged].append(grade)
    flags = Assignment.objects.filter(item__in=ids, flagged=True, state=Assignment.State.DONE)
    flagged = set(flags.values_list("item_id", flat=True))
    settled: dict[tuple[int, str], int] = defaultdict(int)
    changed = []
    for before, now in zip(locked, counted, strict=True):
        state = _item_state(now, grades[now.pk], now.pk in flagged, now.pk in decided)
        if state != now.state or now != before:
            changed.append((now.pk, now.taken, now.done, now.overlap, state))
        # Checks and the like belong to no campaign's progress.
        if state != now.state and now.campaign is not None and now.reason not in MEASURING:
            change = int(state == Item.State.SETTLED) - int(now.state == Item.State.SETTLED)
            settled[now.campaign, resolved_counter(now.reason)] += change
    if changed:
        with connection.cursor() as cursor:
            cursor.execute(_UPDATE_ITEMS, [timezone.now(), *map(list, zip(*changed, strict=True))])
    for (campaign, key), change in settled.items():
        counters.add(campaign, key, change, on=shard)


def _item_state(now: LockedItem, grades: list[int], flagged: bool, decided: bool) -> str:
    # Withdrawn and standing items keep their state whatever stands on them.
    if now.state in (Item.State.WITHDRAWN, Item.State.STANDING):
        return now.state
    if decided:
        return Item.State.SETTLED
    if now.reason == EVIDENCE and not flagged:
        return Item.State.SETTLED if now.done >= now.overlap else Item.State.OPEN
    if now.reason in MEASURING:
        # Items that measure people are resolved without agreement: each answer counts by itself.
        return Item.State.SETTLED if len(grades) >= now.overlap else Item.State.OPEN
    state, _grade = aggregate_judgments(grades, overlap=now.overlap, flagged=flagged)
    return state


def current_texts(
    membership: Membership, *, since: datetime | None = None, items: Sequence[int] | None = None
) -> QuerySet[Target]:
    """Return the member's standing texts; with `items`, only those on these items."""
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
    return found if items is None else found.filter(item__in=one_array(items))


def _move_texts(
    membership: Membership, texts: Sequence[Target], before: Assignment.State, after: Assignment.State
) -> set[int]:
    """Give the assignments on which texts were written the new state, and return their items."""
    mine = Assignment.objects.filter(membership=membership, item__in=[one.item_id for one in texts], state=before)
    # Locked before the update, in one order with other writers of assignments.
    items = list(mine.select_for_update().values_list("item", flat=True))
    Assignment.objects.filter(membership=membership, item__in=items).update(state=after)
    return set(items)
