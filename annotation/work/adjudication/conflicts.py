"""Conflicts: items on which annotators disagree or that they flagged, and the adjudicator's decision on them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Value, Window
from django.db.models.functions import Mod
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from psycopg import Connection

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Membership
from annotation.models.threads import Thread
from annotation.work.queue.aggregation import UNDO_WITHIN, why_not_undo
from annotation.work.queue.assignment import (
    SHARDS,
    DecidedAlready,
    DecisionContent,
    DecisionRefused,
    arm_of,
    check_time,
    fetch_dicts,
    in_transaction,
    resolved_counter,
    run_statement,
)
from annotation.work.queue.undo import revert_resolution, withdraw_judgment
from annotation.work.threads.selectors import with_messages
from corpus.models import CurrentJudgment, ExportRecord, Item, Judgment
from store.sql import read_sql

# A prime: each adjudicator begins elsewhere, so two rarely meet on a conflict, which has no lease.
SPREAD = 7919


def find_conflicts(membership: Membership) -> QuerySet[Item]:
    """Return the conflicts that this adjudicator may decide, without those they judged or hold, in their own order."""
    own = Assignment.objects.filter(item=OuterRef("pk"), membership=membership).exclude(
        state__in=[Assignment.State.RETURNED, Assignment.State.SKIPPED]
    )
    turn = Mod(F("pk") + Value(membership.pk * 31), Value(SPREAD), output_field=IntegerField())
    return (
        Item.objects.filter(collection=membership.collection_id, state=Item.State.CONFLICT)
        .exclude(Exists(own))
        .annotate(turn=turn)
        .order_by("turn", "pk")
    )


def choose_conflict(
    conflicts: QuerySet[Item], *, after: int | None = None, show: int | None = None
) -> tuple[Item | None, int]:
    """Return the conflict to show (`show`, else the one after `after`, else the first), and how many wait."""
    conflict = None
    if show is not None:
        conflict = conflicts.filter(pk=show).first()
    elif after is not None and (skipped := conflicts.filter(pk=after).first()) is not None:
        turn = skipped.turn  # type: ignore[attr-defined]
        conflict = conflicts.filter(Q(turn__gt=turn) | Q(turn=turn, pk__gt=skipped.pk)).first()
    if conflict is not None:
        return conflict, conflicts.count()
    first = conflicts.annotate(waiting=Window(Count("pk"))).first()
    return first, first.waiting if first else 0


def last_decision(membership: Membership) -> int | None:
    """Return the id of the item that this adjudicator resolved last, within 24 hours; None where there is none."""
    own = CurrentJudgment.objects.filter(assessor=membership.assessor_id, step=Judgment.Step.ADJUDICATION)
    recent = own.filter(created_at__gt=timezone.now() - UNDO_WITHIN, item__state=Item.State.SETTLED)
    return recent.order_by("-pk").values_list("item_id", flat=True).first()


def list_opinions(item: Item) -> list[dict[str, Any]]:
    """List the annotators' opinions of the item without names: a grade, a flag with its note, or why it was skipped.

    What was written has a `thread` with the answers so far; its number reveals no order.
    """
    State = Assignment.State
    skipped = Q(state=State.SKIPPED)
    rows = (
        with_messages(Assignment.objects.filter(item=item))
        .filter(Q(state=State.DONE, flagged=True) | Q(state=State.DONE, judgment__grade__isnull=False) | skipped)
        .select_related("judgment")
        # By the random token, because ids would reveal who judged first.
        .order_by("judgment__grade", "token")
    )
    opinions = []
    for number, row in enumerate(rows, 1):
        opinion: dict[str, Any] = {"number": number, "grade": None, "comment": "", "flagged": False, "note": ""}
        if row.state == State.SKIPPED:
            opinion["note"] = row.get_skip_reason_display()
        elif row.flagged or row.judgment is None:
            opinion |= {"flagged": True, "note": row.flag_note}
        else:
            opinion |= {"grade": row.judgment.grade, "comment": row.judgment.comment}
        if row.flagged or opinion["comment"]:
            opinion["thread"] = Thread(item=item, public_id=row.public_id, messages=row.answers)  # type: ignore[attr-defined]
        opinions.append(opinion)
    return opinions


def why_conflict(opinions: Sequence[Mapping[str, Any]]) -> str:
    """Return why an adjudicator is asked about an item, from the annotators' opinions."""
    if any(opinion["flagged"] for opinion in opinions):
        return _("An annotator flagged this pair.")
    if len({opinion["grade"] for opinion in opinions if opinion["grade"] is not None}) > 1:
        return _("Annotators gave different grades.")
    if opinions and all(opinion["grade"] is None for opinion in opinions):
        return _("Everyone assigned to this pair skipped it.")
    return ""


def adjudicate(
    membership: Membership,
    item_id: int,
    grade: int,
    *,
    comment: str = "",
    milliseconds: int | None = None,
    idle: int | None = None,
    shown_ms: int | None = None,
) -> None:
    """Resolve a conflict; the same decision again changes nothing. Raises Http404, DecisionRefused and BadInput."""
    assessor, collection = membership.assessor_id, membership.collection
    adjudicator = {"membership": membership.pk, "assessor": assessor, "collection": collection.pk}

    def resolve(db: Connection[Any]) -> None:
        rows = fetch_dicts(db, _CONFLICT, item=item_id, **adjudicator)
        if not rows:
            raise Http404(_("Pair not found."))
        (conflict,) = rows
        if not conflict["waits"]:
            # Read now, because the locking statement, which may have waited, saw the rows from before its wait.
            decision = _newest_adjudication(membership, item_id)
            if conflict["state"] == Item.State.SETTLED and decision is not None and decision.grade is not None:
                if (decision.grade, decision.comment) == (grade, comment):
                    return
                stored = DecisionContent("judgment", decision.grade, (decision.comment,))
                raise DecidedAlready(stored.explain(collection.grades, collection.grade_names))
            raise DecisionRefused(_("This conflict was resolved while you were working on it."))
        check_time(collection.min_judgment_ms, shown_ms, milliseconds)
        answer = {"grade": grade, "comment": comment, "milliseconds": milliseconds, "idle": idle}
        run_statement(
            db,
            _RESOLVE,
            **answer,
            item=item_id,
            pair=conflict["pair_id"],
            assessor=assessor,
            supersedes=conflict["before"],
            arm=arm_of(conflict["reason"]),
            guideline=collection.guideline_version,
            campaign=conflict["campaign"],
            tally=resolved_counter(conflict["reason"]),
            shard=membership.pk % SHARDS,
        )
        record(membership.user, "conflict.settled", collection, item=item_id, grade=grade)

    in_transaction(resolve)


_CONFLICT = read_sql(__file__, "lock_conflict")
# The newest adjudication is always the label of a pair (corpus.labels), and while the pair is locked
# no newer one can come in.
_RESOLVE = read_sql(__file__, "resolve_conflict")


@transaction.atomic
def undo_adjudication(membership: Membership, item_id: int) -> None:
    """Undo an adjudicator's own decision on an item, which is a conflict again. Raises Http404 and DecisionRefused."""
    item = Item.objects.select_for_update().filter(pk=item_id, collection=membership.collection_id).first()
    decision = _newest_adjudication(membership, item.pk) if item else None
    if item is None or decision is None or decision.grade is None or item.state != Item.State.SETTLED:
        raise Http404(_("You have no decision to undo."))
    exported = ExportRecord.is_exported(item.collection_id, decision.created_at)
    reason = why_not_undo(now=timezone.now(), ended_at=decision.created_at, exported=exported)
    if reason:
        raise DecisionRefused(reason)
    withdraw_judgment(decision)
    record(membership.user, "conflict.undone", membership.collection, item=item.pk)
    Item.objects.filter(pk=item.pk).update(state=Item.State.CONFLICT, settled_at=None)
    revert_resolution(item, shard=membership.pk % SHARDS)


def _newest_adjudication(membership: Membership, item: int) -> Judgment | None:
    """Return the adjudicator's newest row on the item: a decision, or its withdrawal."""
    own = Judgment.objects.filter(item=item, assessor=membership.assessor_id, step=Judgment.Step.ADJUDICATION)
    return own.heads().first()
