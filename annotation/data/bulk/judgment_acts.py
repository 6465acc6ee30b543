"""Bulk acts that exclude or reinstate judgments, member by member."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.models import Membership
from annotation.models.pair_table import BulkAct
from annotation.models.quality_control import JudgmentExclusion
from annotation.work.quality_control import exclusion
from annotation.work.queue.statements import one_array
from corpus.models import Collection, CurrentJudgment, Item, Judgment


def current_judgments(collection: Collection, pairs: list[int]) -> QuerySet[CurrentJudgment]:
    """Return people's current judgments on tasks of these pairs."""
    items = Item.objects.filter(collection=collection, pair__in=one_array(pairs)).order_by()
    members = Membership.objects.filter(collection=collection).order_by()
    return CurrentJudgment.objects.filter(item__in=items.values("pk"), assessor__in=members.values("assessor"))


def excluded_judgments(collection: Collection, pairs: list[int]) -> QuerySet[Judgment]:
    """Return the rows that exclude judgments of these pairs and were not reversed."""
    acts = JudgmentExclusion.objects.filter(membership__collection=collection, reverses=None).order_by()
    acts = acts.exclude(why=JudgmentExclusion.Why.PAIRS)
    rows = Judgment.objects.heads().filter(item__pair__in=one_array(pairs), grade=None)
    return rows.filter(pk__in=acts.values(judgment_id=exclusion.Unnest("judgments")))


def _note(act: BulkAct) -> str:
    return _("Bulk action %(number)s") % {"number": act.number}


def exclude_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Exclude people's judgments of these pairs; return the number of pairs, and what undo needs."""
    rows = list(current_judgments(act.collection, act.pairs).values_list("assessor", "item", "pair"))
    exclusions = [
        exclusion.exclude_judgments(membership=member, by=act.made_by, note=_note(act), items=items).pk
        for member, items in _items_by_member(act.collection, [(assessor, item) for assessor, item, _pair in rows])
    ]
    return len({pair for *_who, pair in rows}), {"exclusions": exclusions}


def reinstate_excluded(act: BulkAct) -> int:
    """Reinstate what an act excluded, where nobody has yet; return the number of judgments."""
    exclusions = JudgmentExclusion.objects.filter(pk__in=act.changes["exclusions"], reversed_by=None).order_by("pk")
    return sum(exclusion.reinstate_judgments(act=row, by=act.made_by).size for row in exclusions)


def reinstate_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Reinstate excluded judgments of these pairs; return the number of pairs, and what undo needs."""
    rows = list(excluded_judgments(act.collection, act.pairs).values_list("assessor", "item", "pair"))
    members = _items_by_member(act.collection, [(assessor, item) for assessor, item, _pair in rows])
    for member, items in members:
        exclusion.reinstate_items(membership=member, by=act.made_by, items=items)
    reinstated = [[member.pk, items] for member, items in members]
    return len({pair for *_who, pair in rows}), {"reinstated": reinstated}


def exclude_reinstated(act: BulkAct) -> int:
    """Exclude again what an act reinstated; return the number of judgments."""
    count = 0
    for pk, items in act.changes["reinstated"]:
        member = Membership.objects.select_related("collection", "user", "assessor").get(pk=pk)
        # Somebody may have excluded these meanwhile, and excluding nothing is refused.
        if exclusion.current_judgments(member).filter(item__in=one_array(items)).exists():
            excluded = exclusion.exclude_judgments(membership=member, by=act.made_by, note=_note(act), items=items)
            count += excluded.size
    return count


def _items_by_member(collection: Collection, rows: list[tuple[int, int]]) -> list[tuple[Membership, list[int]]]:
    """Group (assessor, item) rows by member, in the order of members' ids."""
    items: dict[int, set[int]] = {}
    for assessor, item in rows:
        items.setdefault(assessor, set()).add(item)
    # In one order, so that two acts at once do not deadlock.
    members = Membership.objects.filter(collection=collection, assessor__in=list(items)).order_by("pk")
    members = members.select_related("collection", "user", "assessor")
    return [(member, sorted(items[member.assessor_id])) for member in members]
