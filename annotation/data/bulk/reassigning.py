"""The bulk act that takes pairs from their annotators, for anyone or reserved for one member (ReservedFor).

A pair is never reserved for a member who has seen it. The reservation ends when the member judges, skips or
flags the pair, is paused or leaves (annotation.work.queue), or by undo.
"""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.data.bulk.queue_acts import move_back
from annotation.models import Membership, Role
from annotation.models.pair_table import BulkAct
from annotation.work.queue.annotators import WorkLimits, closed, needs_qualification
from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection
from store.sql import fetch_rows, read_sql

ANYONE = "anyone"
_RETURN = read_sql(__file__, "return_pairs")
_RESERVE = read_sql(__file__, "reserve_pairs")
_RELEASE = read_sql(__file__, "release_pairs")
_UNDO = read_sql(__file__, "undo_reservations")
_COUNT = read_sql(__file__, "count_reassignable")
_COUNT_MET = read_sql(__file__, "count_met")


def list_choices(collection: Collection, pairs: list[int]) -> dict[str, tuple[str, int]]:
    """Return to whom pairs can go: by the option's value, its title and the number of pairs that it changes."""
    [(free, assigned)] = fetch_rows(_COUNT, collection=collection.pk, pairs=pairs)
    met = dict(fetch_rows(_COUNT_MET, collection=collection.pk, pairs=pairs))
    members = Membership.objects.filter(collection=collection).select_related("user", "collection")
    people = {
        str(member.pk): (member.user.username, free - met.get(member.pk, 0))
        for member in members.order_by("user__username")
        if may_get_pairs(member)
    }
    return {ANYONE: (_("anyone"), assigned)} | {key: choice for key, choice in people.items() if choice[1]}


def may_get_pairs(member: Membership) -> bool:
    """Return whether pairs can be reserved for a member.

    They must be active and no viewer, not paused, before their deadline and, where that is asked, qualified.
    """
    active = (
        member.is_active
        and member.user.is_active
        and member.role != Role.VIEWER
        and not WorkLimits.of(member).is_over()
    )
    return active and closed(member) in ("", "consent") and not needs_qualification(member)


def describe_choices(act: BulkAct) -> dict[str, str]:
    """Return the options of an act's page."""
    return {
        key: ngettext("%(who)s (%(n)s pair)", "%(who)s (%(n)s pairs)", n) % {"who": recipient, "n": f"{n:,}"}
        for key, (recipient, n) in list_choices(act.collection, act.pairs).items()
    }


def reassign_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Reassign pairs: release them from their holders, to anyone or to the member that the option names.

    Raises BadInput.
    """
    member = None if act.option == ANYONE else int(act.option)
    returned = fetch_rows(_RETURN, collection=act.collection_id, pairs=act.pairs, member=member)
    if member is None:
        released = fetch_rows(_RELEASE, collection=act.collection_id, pairs=act.pairs)
        forget_watermarks(act.collection)
        return len({*returned, *released}), {}
    rows = fetch_rows(_RESERVE, collection=act.collection_id, pairs=act.pairs, member=member)
    # Locked after the tasks, as a claim does. A request that pauses or removes the member waits, and then releases
    # these pairs.
    recipient = hold(Membership.objects.select_related("user", "collection"), member)
    if not may_get_pairs(recipient):
        raise BadInput(_("%(user)s cannot get pairs now. Choose someone else.") % {"user": recipient.user})
    forget_watermarks(act.collection)
    return len(rows), {"moved": rows, "member": member}


def release_pairs(act: BulkAct) -> int:
    """Release the pairs that an act still reserves; return their number."""
    return move_back(act, _UNDO, member=act.changes["member"])
