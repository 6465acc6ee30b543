"""Targets (contribution and evidence) of pairs: the newest by a person, otherwise the newest by a judge."""

from collections.abc import Iterable

from django.db.models import Case, IntegerField, Max, QuerySet, Value, When

from corpus.evidence import measures
from corpus.holding import hold
from corpus.models import Collection, Item, Pair, Target

_PERSON_FIRST = Case(When(kind=Target.Kind.PERSON, then=Value(0)), default=Value(1), output_field=IntegerField())


# Measures of a row that withdraws an excluded text, which is not offered for editing again.
SET_ASIDE = {"set_aside": True}


def newest_targets(collection: Collection | None = None) -> QuerySet[Target]:
    """Return the current target of each pair that has one, in a collection or in all of them."""
    return _current_targets(Target.objects.filter(pair__collection=collection) if collection else Target.objects.all())


def texts_of(pairs: Iterable[int]) -> dict[int, str]:
    """Return the training text of each of these pairs that has a good target."""
    targets = _current_targets(Target.objects.filter(pair__in=list(pairs)))
    rows = targets.values_list("pair", "contribution", "evidence")
    return {pair: measures.EvidenceTarget(contribution, text).text for pair, contribution, text in rows}


def evidence_of(pairs: Iterable[int]) -> dict[int, str]:
    """Return the evidence of each of these pairs that has a good target with evidence."""
    targets = _current_targets(Target.objects.filter(pair__in=list(pairs))).exclude(evidence="")
    return dict(targets.values_list("pair", "evidence"))


def _current_targets(targets: QuerySet[Target]) -> QuerySet[Target]:
    current = targets.filter(good=True, withdrawn_by=None, withdraws=None)
    first = current.order_by("pair", _PERSON_FIRST, "-version").distinct("pair")
    return Target.objects.filter(pk__in=first.values("pk")).order_by("pair")


def withdraw(item: Item, writer: str) -> None:
    """Withdraw this item's text by appending a row; earlier texts can still be edited."""
    pair = locked_pair(item.pair_id)
    last = Target.objects.filter(item=item, withdraws=None, withdrawn_by=None).order_by("-version").first()
    if last is not None:
        Target.objects.create(
            pair=pair,
            version=next_version(pair.pk),
            kind=Target.Kind.PERSON,
            writer=writer,
            good=False,
            item=item,
            withdraws=last,
        )


def locked_pair(pair: int) -> Pair:
    """Lock a pair and return it, before a target is added, so that versions have no gaps."""
    return hold(Pair.objects.select_related("query", "document"), pair, no_key=True)


def next_version(pair: int) -> int:
    """Return the next version of a locked pair."""
    return int(Target.objects.filter(pair=pair).aggregate(last=Max("version"))["last"] or 0) + 1
