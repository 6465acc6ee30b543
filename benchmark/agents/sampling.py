"""The queries that agents are asked: drawn once for a suite or a collection, and never again (BRIGHT-Pro 6.1)."""

import random
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from benchmark.models import AgentSample, Suite
from benchmark.suites.groups import collections_of
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Query

PER_MEMBER = 25
SEED = 0


def members_of(target: Suite | Collection) -> list[Collection]:
    """The collections of a suite in their order, or the one itself."""
    return collections_of(target) if isinstance(target, Suite) else [target]


def find_sample(target: Suite | Collection) -> AgentSample | None:
    """The stored sample, if one was drawn."""
    return AgentSample.objects.filter(**_of(target)).first()


@transaction.atomic
def ensure_sample(target: Suite | Collection, *, per_member: int | None = None, seed: int | None = None) -> AgentSample:
    """Return the stored sample, drawn now if none. BadInput for another size or seed."""
    found = find_sample(target)
    if found is None:
        size, seed = PER_MEMBER if per_member is None else per_member, SEED if seed is None else seed
        drawn = _draw_members(target, size, seed)
        # Two commands at once: the second one gets what the first one stored.
        values = {"seed": seed, "per_member": size, "queries": drawn}
        return AgentSample.objects.get_or_create(**_of(target), defaults=values)[0]
    # Traces over two samples would not compare, and nothing in a table would tell them apart (ADR 0088).
    if per_member not in (None, found.per_member) or seed not in (None, found.seed):
        told = _(
            "The sample of %(name)s was drawn once, with %(count)d queries per collection and seed %(seed)d, and "
            "stays: leave size and seed out, or make another suite."
        )
        raise BadOption("sample", told % {"name": target.name, "count": found.per_member, "seed": found.seed})
    return found


def preview_sample(
    target: Suite | Collection, *, per_member: int | None = None, seed: int | None = None
) -> dict[str, list[int]]:
    """Return the queries of `ensure_sample`, by collection; stores nothing. Raises BadInput."""
    if (found := find_sample(target)) is not None:
        return dict(found.queries)
    return _draw_members(target, PER_MEMBER if per_member is None else per_member, SEED if seed is None else seed)


def _draw_members(target: Suite | Collection, per_member: int, seed: int) -> dict[str, list[int]]:
    if per_member < 1:
        raise BadOption("sample", _("Enter a number from 1."))
    return {str(one.pk): _draw_queries(one, per_member, seed) for one in members_of(target)}


def _draw_queries(collection: Collection, count: int, seed: int) -> list[int]:
    """Draw from the queries that have aspects, or from all where none has; return them in the order of their ids."""
    # Without aspects an answer cannot be graded: such queries are drawn only where no query has any.
    rows = Query.objects.filter(collection=collection, is_current=True)
    with_aspects = rows.filter(aspects__is_current=True).distinct()
    keys = dict((with_aspects if with_aspects.exists() else rows).values_list("external_id", "pk"))
    if not keys:
        raise BadInput(_("%(name)s has no queries") % {"name": collection.name})
    names = sorted(keys)
    # The name goes into the seed, so that the members of a suite are drawn apart.
    chosen = random.Random(f"{seed}/{collection.name}").sample(names, min(count, len(names)))
    return [keys[name] for name in sorted(chosen)]


def sampled_queries(sample: AgentSample, collection: Collection) -> Sequence[Query]:
    """The queries of one collection in a sample, in its order."""
    keys = sample.queries.get(str(collection.pk), [])
    rows = Query.objects.in_bulk(keys)
    return [rows[key] for key in keys if key in rows]


def describe_sample(sample: AgentSample) -> dict[str, Any]:
    """Return the document `sample.json`: the ids of the sampled queries, by collection."""
    names = dict(Collection.objects.filter(pk__in=sample.queries).values_list("pk", "name"))
    rows = Query.objects.in_bulk([key for keys in sample.queries.values() for key in keys])
    queries = [
        {"collection": names[int(member)], "query_id": rows[key].external_id}
        for member, keys in sample.queries.items()
        if int(member) in names
        for key in keys
        if key in rows
    ]
    return {"seed": sample.seed, "per_domain": sample.per_member, "queries": queries}


def _of(target: Suite | Collection) -> dict[str, Any]:
    return {"suite": target} if isinstance(target, Suite) else {"collection": target}
