"""Bulk acts on selected pairs: plan, carry out, undo.

Each step is one transaction; repeating it changes nothing more.
"""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from actions.services import Actor, action
from annotation.data.bulk.kinds import KINDS
from annotation.data.bulk.options import ActOptions
from annotation.models import User
from annotation.models.pair_table import BulkAct
from annotation.work.queue.assignment import retry_on_conflict
from annotation.work.queue.statements import one_array
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection, Pair

MOST = 20_000
FORGOTTEN_AFTER = timedelta(days=1)  # A plan that nobody confirmed.
State = BulkAct.State


def plan_act(*, collection: Collection, kind: str, pairs: list[int], by: User) -> BulkAct:
    """Store a selection of pairs and an act until it is confirmed. Raises BadInput."""
    if kind not in BulkAct.Kind.values:
        raise BadInput(_("Choose one of the actions."))
    if not pairs:
        raise BadInput(_("Select at least one pair."))
    if len(pairs) > MOST:
        raise BadInput(_("An action takes at most %(most)s pairs at once. Narrow the filters.") % {"most": f"{MOST:,}"})
    # Unconfirmed plans are deleted when the next one is made, so that no job is needed.
    old = BulkAct.objects.filter(state=State.PLANNED, created_at__lt=timezone.now() - FORGOTTEN_AFTER)
    old.filter(collection=collection).delete()
    return BulkAct.objects.create(collection=collection, kind=kind, pairs=pairs, made_by=by)


def select_pairs(collection: Collection, ids: list[int]) -> list[int]:
    """Return the ids that are pairs of this collection, ascending."""
    pairs = Pair.objects.filter(collection=collection, pk__in=one_array(ids))
    return list(pairs.order_by("pk").values_list("pk", flat=True))


def _note_act(_options: ActOptions, act: BulkAct) -> dict[str, Any]:
    # The member for whom pairs were reserved is named by reference, as everybody in the log.
    details: dict[str, Any] = {"bulk": act.number, "pairs": act.affected, "option": act.option}
    if member := act.changes.get("member"):
        details |= {"option": "", "concerns": User.objects.get(memberships=member)}
    return details


@action(lambda act: KINDS[act.kind].recorded, noted=_note_act, retry=retry_on_conflict)
def run_act(actor: Actor, act: BulkAct, options: ActOptions) -> BulkAct:
    """Carry out a planned act. Raises BadInput where that has been done, or for an unknown option."""
    # Locked, so that two clicks on the button carry it out once.
    planned, kind = _lock_act(act), KINDS[act.kind]
    if planned.state != State.PLANNED:
        raise BadInput(_("This action has already been carried out."))
    choices = kind.options_of(planned)
    if choices and options.option not in choices:
        raise BadInput(_("Choose one of the options."))
    planned.option = options.option if choices else ""
    planned.note = options.note if kind.takes_note else ""
    planned.affected, planned.changes = kind.run(planned)
    planned.state, planned.done_at = State.DONE, timezone.now()
    planned.save(update_fields=["option", "note", "affected", "changes", "state", "done_at"])  # not the selected pairs
    return planned


@action(
    "pairs.undone", noted=lambda _options, act: {"bulk": act.number, "pairs": act.affected}, retry=retry_on_conflict
)
def undo_act(actor: Actor, act: BulkAct) -> BulkAct:
    """Undo an act on the rows that nobody has changed since; `affected` says how many. Raises BadInput."""
    locked, kind = _lock_act(act), KINDS[act.kind]
    if locked.state != State.DONE:
        raise BadInput(_("This action has already been undone, or was never carried out."))
    if kind.undo is None or not kind.can_undo(locked):
        raise BadInput(_("This action cannot be undone."))
    # Rows that the undo appends bear the name of the person who asks for it.
    locked.made_by = actor.user
    locked.affected = kind.undo(locked)
    BulkAct.objects.filter(pk=locked.pk).update(state=State.UNDONE, undone_at=timezone.now())
    return locked


def _lock_act(act: BulkAct) -> BulkAct:
    return hold(BulkAct.objects.select_related("collection", "made_by"), act.pk)
