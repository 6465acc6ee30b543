"""Making a paired study, and ending it (DREAM 3.2.4).

Of the people named, one half by lot gets every pair of the study with its debate, the other half
the same pairs without. What they say measures and comes to no label. The pairs' own open items wait
until the study has ended, so that nobody meets one of them on the other side.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.access.audit_log.recording import SomeScope, record
from annotation.models import Membership, Study
from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadInput
from corpus.models import Collection
from store.sql import execute, fetch_rows, read_sql

MOST = 2_000  # Pairs of a study.
# Priority of its items: those who take part do them in one go, so that both groups work alike.
FIRST = -1e9

CANDIDATES = read_sql(__file__, "draw_study_pairs")
MAKE = read_sql(__file__, "make_study")
HOLD = read_sql(__file__, "hold_study_pairs")
RELEASE = read_sql(__file__, "release_study_pairs")
WITHDRAW = read_sql(__file__, "withdraw_study")

# By whether only pairs with a reference grade are wanted.
TOO_FEW = {
    True: gettext_noop(
        "only %(found)d escalated pairs with a reference grade have a debate and are new "
        "to all participants; %(pairs)d were requested. Choose fewer pairs or other "
        "people"
    ),
    False: gettext_noop(
        "only %(found)d escalated pairs have a debate and are new to all participants; "
        "%(pairs)d were requested. Choose fewer pairs or other people"
    ),
}


def groups_of(people: Sequence[int], seed: int) -> tuple[list[int], list[int]]:
    """Split memberships at random into two groups, with and without the debate; an odd one out reads the debate."""
    # By a hash: the groups are the same whatever version of Python draws them.
    order = sorted(set(people), key=lambda one: sha256(f"{seed}:{one}".encode()).digest())
    return sorted(order[0::2]), sorted(order[1::2])


def list_candidates(collection: Collection) -> QuerySet[Membership]:
    """Active members who may take part in a study."""
    return Membership.objects.filter(collection=collection, is_active=True, user__is_active=True, paused_at=None)


@transaction.atomic
def make_study(
    *,
    by: SomeScope | None,
    collection: Collection,
    people: Sequence[int],
    pairs: int,
    overlap: int = 3,
    gold: bool = True,
    seed: int = 0,
) -> Study:
    """Draw pairs and groups, and reserve the pairs. `gold`: only pairs with a reference grade. Raises BadInput."""
    members = list_candidates(collection).filter(pk__in=people)
    shown, hidden = groups_of(list(members.values_list("pk", flat=True)), seed)
    if len(hidden) < overlap:
        words = _("Two groups of %(overlap)d need %(people)d active people. Choose more people, or fewer per group")
        raise BadInput(words % {"overlap": overlap, "people": 2 * overlap})
    values: dict[str, Any] = {"collection": collection.pk, "seed": seed}
    chosen = [row[0] for row in fetch_rows(CANDIDATES, **values, people=[*shown, *hidden], pairs=pairs, gold=gold)]
    if len(chosen) < pairs:
        raise BadInput(_(TOO_FEW[gold]) % {"found": len(chosen), "pairs": pairs})
    study = Study.objects.create(collection=collection, seed=seed, overlap=overlap, made_by=by.user if by else None)
    execute(HOLD, pairs=chosen)
    values |= {"study": study.pk, "pairs": chosen, "shown": shown, "hidden": hidden}
    execute(MAKE, **values, overlap=overlap, first=FIRST)
    forget_watermarks(collection)
    both = len(shown) + len(hidden)
    record(by, "study.made", collection, study=study.number, pairs=pairs, overlap=overlap, people=both)
    return study


@transaction.atomic
def end_study(by: SomeScope | None, study: Study) -> None:
    """Withdraw what is still open of it, and give the pairs' own items back to the queue. Again changes nothing."""
    execute(WITHDRAW, study=study.pk)
    execute(RELEASE, study=study.pk)
    # Ended twice, it is recorded once.
    if Study.objects.filter(pk=study.pk, ended_at=None).update(ended_at=timezone.now()):
        record(by, "study.ended", study.collection, study=study.number)
    forget_watermarks(study.collection)
