"""Bulk acts on selected pairs: plan, confirm, do, undo.

Each step is one transaction, and doing one twice changes nothing more.
"""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.audit_log.recording import record
from annotation.bulk.kinds import KINDS, BulkKind
from annotation.data.pair_filters import PairFilters
from annotation.data.pairs import matching_pairs
from annotation.models import User
from annotation.models.pair_table import BulkAct
from annotation.queue.assignment import retry_on_conflict
from annotation.queue.statements import one_array
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection, Pair
from judges.models import Campaign

MOST = 20_000
FORGOTTEN_AFTER = timedelta(days=1)  # A plan that nobody confirmed.
State = BulkAct.State


def plan_act(*, collection: Collection, kind: str, pairs: list[int], by: User) -> BulkAct:
    """Keep what was selected for which act, until it is confirmed. Raises BadInput."""
    if kind not in BulkAct.Kind.values:
        raise BadInput(_("Choose one of the actions."))
    if not pairs:
        raise BadInput(_("Select at least one pair."))
    if len(pairs) > MOST:
        raise BadInput(_("An action takes at most %(most)s pairs at once. Narrow the filters.") % {"most": f"{MOST:,}"})
    # Plans that nobody confirmed are swept by whoever plans the next one: no job is needed for it.
    old = BulkAct.objects.filter(state=State.PLANNED, created_at__lt=timezone.now() - FORGOTTEN_AFTER)
    old.filter(collection=collection).delete()
    return BulkAct.objects.create(collection=collection, kind=kind, pairs=pairs, made_by=by)


def select_pairs(collection: Collection, ids: list[int]) -> list[int]:
    """Return the ids that are pairs of this collection, ascending."""
    return list(
        Pair.objects.filter(collection=collection, pk__in=one_array(ids)).order_by("pk").values_list("pk", flat=True)
    )


def select_matching(collection: Collection, filters: PairFilters, campaign: Campaign | None) -> list[int]:
    """Return all pairs that match, up to one more than an act takes."""
    found = matching_pairs(collection, filters, campaign=campaign).order_by("pk")
    # One more than an act takes, so that plan_act can say that there are too many.
    return list(found.values_list("pk", flat=True)[: MOST + 1])


def run_act(act: BulkAct, *, option: str, by: User) -> BulkAct:
    """Do a planned act and record it. Raises BadInput where it was done already, or for an unknown option."""
    kind = KINDS[BulkAct.Kind(act.kind)]

    def once() -> BulkAct:
        with transaction.atomic():
            # Locked: two clicks on the button do it once.
            found = _lock_act(act)
            if found.state != State.PLANNED:
                raise BadInput(_("This action has already been carried out."))
            options = kind.options_of(found)
            if options and option not in options:
                raise BadInput(_("Choose one of the options."))
            found.option = option if options else ""
            found.affected, found.changes = kind.run(found)
            found.state, found.done_at = State.DONE, timezone.now()
            found.save(update_fields=["option", "affected", "changes", "state", "done_at"])  # not the selected pairs
            _record_act(found, kind, by)
            return found

    return retry_on_conflict(once)


def _record_act(act: BulkAct, kind: BulkKind, by: User) -> None:
    """Record an act; whom pairs were reserved for is named by reference, as everybody in the log."""
    member = act.changes.get("member")
    concerns = User.objects.get(memberships=member) if member else None
    # A member's id in the option is left out of the log, as everywhere: whom it concerns is a reference.
    details = {"bulk": act.number, "pairs": act.affected, "option": "" if member else act.option}
    record(by, kind.recorded, act.collection, concerns=concerns, **details)


def undo_act(act: BulkAct, *, by: User) -> int:
    """Undo an act where nobody changed its rows since; return how many rows changed. Raises BadInput."""
    kind = KINDS[BulkAct.Kind(act.kind)]

    def once() -> int:
        with transaction.atomic():
            found = _lock_act(act)
            if found.state != State.DONE:
                raise BadInput(_("This action has already been undone, or was never carried out."))
            if kind.undo is None or not kind.can_undo(found):
                raise BadInput(_("This action cannot be undone."))
            # An undo is done by whoever asks for it, and the rows that it appends bear that name.
            found.made_by = by
            count = kind.undo(found)
            BulkAct.objects.filter(pk=found.pk).update(state=State.UNDONE, undone_at=timezone.now())
            record(by, "pairs.undone", found.collection, bulk=found.number, pairs=count)
            return count

    return retry_on_conflict(once)


def _lock_act(act: BulkAct) -> BulkAct:
    return hold(BulkAct.objects.select_related("collection", "made_by"), act.pk)
