"""Judgments on selected pairs are excluded or reinstated, person by person (annotation.quality_control.exclusion)."""

from typing import Any

from django.db.models import QuerySet

from annotation.models import Membership, User
from annotation.models.quality_control import JudgmentExclusion
from annotation.quality_control import exclusion
from annotation.queue.statements import one_array
from corpus.models import Collection, CurrentJudgment, Item, Judgment


def current_judgments(collection: Collection, pairs: list[int]) -> QuerySet[CurrentJudgment]:
    """Return the judgments of people on tasks of these pairs that count."""
    items = Item.objects.filter(collection=collection, pair__in=one_array(pairs)).order_by()
    members = Membership.objects.filter(collection=collection).order_by()
    return CurrentJudgment.objects.filter(item__in=items.values("pk"), assessor__in=members.values("assessor"))


def excluded_judgments(collection: Collection, pairs: list[int]) -> QuerySet[Judgment]:
    """Return the rows by which judgments on tasks of these pairs were excluded and not yet reinstated."""
    acts = JudgmentExclusion.objects.filter(membership__collection=collection, reverses=None).order_by()
    acts = acts.exclude(why=JudgmentExclusion.Why.PAIRS)
    rows = Judgment.objects.heads().filter(item__pair__in=one_array(pairs), grade=None)
    return rows.filter(pk__in=acts.values(one=exclusion.Unnest("judgments")))


def exclude_pairs(collection: Collection, pairs: list[int], by: User, note: str) -> tuple[int, dict[str, Any]]:
    """Exclude what people said about these pairs; return how many pairs that were, and what undo needs."""
    found = list(current_judgments(collection, pairs).values_list("assessor", "item", "pair"))
    acts = [
        exclusion.exclude_judgments(membership=member, by=by, note=note, items=items).pk
        for member, items in _items_by_member(collection, [(assessor, item) for assessor, item, _ in found])
    ]
    return len({pair for _, _, pair in found}), {"exclusions": acts}


def reinstate_excluded(changes: dict[str, Any], by: User) -> int:
    """Reinstate what an act excluded, where that was not done meanwhile; return how many rows are back."""
    acts = JudgmentExclusion.objects.filter(pk__in=changes["exclusions"], reversed_by=None).order_by("pk")
    return sum(exclusion.reinstate_judgments(act=act, by=by).size for act in acts)


def reinstate_pairs(collection: Collection, pairs: list[int], by: User) -> tuple[int, dict[str, Any]]:
    """Reinstate what was excluded of these pairs; return how many pairs that were, and what undo needs."""
    found = list(excluded_judgments(collection, pairs).values_list("assessor", "item", "pair"))
    back = []
    for member, items in _items_by_member(collection, [(assessor, item) for assessor, item, _ in found]):
        exclusion.reinstate_items(membership=member, by=by, items=items)
        back.append([member.pk, items])
    return len({pair for _, _, pair in found}), {"reinstated": back}


def exclude_reinstated(changes: dict[str, Any], by: User, note: str) -> int:
    """Exclude once more what an act reinstated; return how many rows that were."""
    count = 0
    for pk, items in changes["reinstated"]:
        member = Membership.objects.select_related("collection", "user", "assessor").get(pk=pk)
        # Excluding nothing is refused, and somebody may have excluded these meanwhile.
        if exclusion.current_judgments(member).filter(item__in=one_array(items)).exists():
            count += exclusion.exclude_judgments(membership=member, by=by, note=note, items=items).size
    return count


def _items_by_member(collection: Collection, found: list[tuple[int, int]]) -> list[tuple[Membership, list[int]]]:
    """Group (assessor, item) by the member whose assessor it is, in the order of their ids."""
    items: dict[int, set[int]] = {}
    for assessor, item in found:
        items.setdefault(assessor, set()).add(item)
    # In one order, so that two acts at once do not wait for each other crosswise.
    members = Membership.objects.filter(collection=collection, assessor__in=list(items)).order_by("pk")
    members = members.select_related("collection", "user", "assessor")
    return [(member, sorted(items[member.assessor_id])) for member in members]
