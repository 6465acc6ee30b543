"""The bulk act that sets labels: an admin's grade, which the history shows as an adjudication without a task.

It has the authority of an adjudication (corpus.labels): the newest one is the label, whatever people and judges said or
say later. Tasks of the pair that wait for a grade are withdrawn, and undo brings them back.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Membership
from annotation.models.pair_table import BulkAct
from annotation.work.queue.statements import one_array
from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadInput
from corpus.labels import ADJUDICATOR, lock_pairs, name_grade, resolve_pairs
from corpus.models import Collection, Judgment, Label
from judges.costs import counters
from store.sql import fetch_rows, read_sql

_SET = read_sql(__file__, "set_labels")
_UNDO = read_sql(__file__, "undo_labels")
_WITHDRAW = read_sql(__file__, "withdraw_waiting")
_REOPEN = read_sql(__file__, "reopen_waiting")


def count_grades(collection: Collection, pairs: list[int]) -> dict[int, int]:
    """Return, by grade, how many pairs would get it: all but those that have it from an adjudicator."""
    labels = Label.objects.filter(pair__in=one_array(pairs), aspect=None, origin=ADJUDICATOR)
    existing = list(labels.values_list("grade", flat=True))
    return {grade: len(pairs) - existing.count(grade) for grade in range(collection.grades + 1)}


def describe_grades(act: BulkAct) -> dict[str, str]:
    """Return the options of an act's page."""
    return {
        str(grade): ngettext("%(who)s (%(n)s pair)", "%(who)s (%(n)s pairs)", n)
        % {"who": name_grade(grade, act.collection.grades, act.collection.grade_names), "n": f"{n:,}"}
        for grade, n in count_grades(act.collection, act.pairs).items()
    }


def set_labels(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Set the label of these pairs to the grade that the option names; return how many, and what undo needs.

    Raises BadInput where the admin is not a member, under whose name grades are stored.
    """
    author = Membership.objects.filter(user=act.made_by, collection=act.collection, is_active=True).first()
    if author is None:
        raise BadInput(_("You are not a member of this collection. Join it on the People page before you judge."))
    tasks = fetch_rows(_WITHDRAW, collection=act.collection_id, pairs=act.pairs, grade=int(act.option))
    _count_resolved((campaign for _pk, _state, campaign in tasks), 1)
    lock_pairs(act.pairs)
    rows = fetch_rows(
        _SET,
        collection=act.collection_id,
        pairs=act.pairs,
        assessor=author.assessor_id,
        grade=int(act.option),
        guideline=act.collection.guideline_version,
        comment=act.note,
    )
    resolve_pairs(pair for _pk, pair in rows)
    waited = [[pk, state] for pk, state, _campaign in tasks]
    return len(rows), {"judgments": [pk for pk, _pair in rows], "tasks": waited}


def withdraw_labels(act: BulkAct) -> int:
    """Withdraw the grades of an act that nobody has replaced; return how many."""
    judgments, tasks = act.changes["judgments"], act.changes.get("tasks", ())
    items, states = [pk for pk, _state in tasks], [state for _pk, state in tasks]
    reopened = fetch_rows(_REOPEN, items=items, states=states, judgments=judgments)
    _count_resolved((campaign for (campaign,) in reopened), -1)
    forget_watermarks(act.collection)
    lock_pairs(Judgment.objects.filter(pk__in=one_array(judgments)).values_list("pair", flat=True))
    pairs = [pair for (pair,) in fetch_rows(_UNDO, judgments=judgments)]
    resolve_pairs(pairs)
    return len(pairs)


def _count_resolved(campaigns: Iterable[int | None], sign: int) -> None:
    """Count tasks among those that people resolved, by their campaigns."""
    for campaign, count in sorted(Counter(filter(None, campaigns)).items()):
        counters.add(campaign, "settled", sign * count)
