"""Start and end a paired study (DREAM 3.2.4).

A random half of the participants gets every pair of the study with its debate, the other half gets
the same pairs without it. Their judgments measure the effect and resolve no label. The ordinary open
items of these pairs wait until the study has ended, so that nobody gets a pair in both conditions.
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
from annotation.models import Membership, Role, Study
from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadInput
from corpus.models import Collection
from store.sql import execute, fetch_rows, read_sql

MOST = 2_000  # The most pairs of a study.
# The priority of a study's items: participants judge them first and without a break, in both groups alike.
FIRST = -1e9

CANDIDATES = read_sql(__file__, "draw_study_pairs")
MAKE = read_sql(__file__, "make_study")
HOLD = read_sql(__file__, "hold_study_pairs")
RELEASE = read_sql(__file__, "release_study_pairs")
WITHDRAW = read_sql(__file__, "withdraw_study")

# By whether only pairs with a reference grade are drawn.
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
    """Split memberships at random into a group with the debate, of odd numbers the larger, and a group without."""
    # By a hash, so that the groups are the same in every version of Python.
    order = sorted(set(people), key=lambda membership: sha256(f"{seed}:{membership}".encode()).digest())
    return sorted(order[0::2]), sorted(order[1::2])


def list_candidates(collection: Collection) -> QuerySet[Membership]:
    """Return the active members who can take part in a study."""
    people = Membership.objects.filter(collection=collection, is_active=True, user__is_active=True, paused_at=None)
    return people.exclude(role=Role.VIEWER)


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
    """Draw the pairs and groups of a study, and reserve the pairs; `gold`: only pairs with a reference grade.

    Raises BadInput.
    """
    members = list_candidates(collection).filter(pk__in=people)
    shown, hidden = groups_of(list(members.values_list("pk", flat=True)), seed)
    if len(hidden) < overlap:
        message = _("Two groups of %(overlap)d need %(people)d active people. Choose more people, or fewer per group")
        raise BadInput(message % {"overlap": overlap, "people": 2 * overlap})
    values: dict[str, Any] = {"collection": collection.pk, "seed": seed}
    study_pairs = [row[0] for row in fetch_rows(CANDIDATES, **values, people=[*shown, *hidden], pairs=pairs, gold=gold)]
    if len(study_pairs) < pairs:
        raise BadInput(_(TOO_FEW[gold]) % {"found": len(study_pairs), "pairs": pairs})
    study = Study.objects.create(collection=collection, seed=seed, overlap=overlap, made_by=by.user if by else None)
    execute(HOLD, pairs=study_pairs)
    values |= {"study": study.pk, "pairs": study_pairs, "shown": shown, "hidden": hidden}
    execute(MAKE, **values, overlap=overlap, first=FIRST)
    forget_watermarks(collection)
    participants = len(shown) + len(hidden)
    record(by, "study.made", collection, study=study.number, pairs=pairs, overlap=overlap, people=participants)
    return study


@transaction.atomic
def end_study(by: SomeScope | None, study: Study) -> None:
    """Withdraw the open items of a study, and return its pairs' ordinary items to the queue. Can be repeated."""
    execute(WITHDRAW, study=study.pk)
    execute(RELEASE, study=study.pk)
    # Recorded once, also if the study is ended twice.
    if Study.objects.filter(pk=study.pk, ended_at=None).update(ended_at=timezone.now()):
        record(by, "study.ended", study.collection, study=study.number)
    forget_watermarks(study.collection)
