"""The queries that agents answer: drawn once for a suite or a collection, and never again (BRIGHT-Pro 6.1)."""

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
    """Return the collections of a suite in their order, or the single collection."""
    return collections_of(target) if isinstance(target, Suite) else [target]


def find_sample(target: Suite | Collection) -> AgentSample | None:
    """Return the stored sample, if one was drawn."""
    return AgentSample.objects.filter(**_of(target)).first()


@transaction.atomic
def ensure_sample(target: Suite | Collection, *, per_member: int | None = None, seed: int | None = None) -> AgentSample:
    """Return the stored sample, or draw it now. Raises BadInput for a size or seed other than the stored ones."""
    sample = find_sample(target)
    if sample is None:
        size, seed = PER_MEMBER if per_member is None else per_member, SEED if seed is None else seed
        # If two commands draw at once, the second one gets the sample that the first one stored.
        values = {"seed": seed, "per_member": size, "queries": _draw_members(target, size, seed)}
        return AgentSample.objects.get_or_create(**_of(target), defaults=values)[0]
    # Traces over two samples would not compare, and nothing in a table would tell them apart (ADR 0088).
    if per_member not in (None, sample.per_member) or seed not in (None, sample.seed):
        message = _(
            "The sample of %(name)s was drawn once, with %(count)d queries per collection and seed %(seed)d, and "
            "stays: leave size and seed out, or make another suite."
        )
        raise BadOption("sample", message % {"name": target.name, "count": sample.per_member, "seed": sample.seed})
    return sample


def preview_sample(
    target: Suite | Collection, *, per_member: int | None = None, seed: int | None = None
) -> dict[str, list[int]]:
    """Return the queries that `ensure_sample` would draw, by collection; store nothing. Raises BadInput."""
    if (sample := find_sample(target)) is not None:
        return dict(sample.queries)
    return _draw_members(target, PER_MEMBER if per_member is None else per_member, SEED if seed is None else seed)


def _draw_members(target: Suite | Collection, per_member: int, seed: int) -> dict[str, list[int]]:
    """Draw queries with aspects from each collection, or from all its queries where none has; in id order."""
    if per_member < 1:
        raise BadOption("sample", _("Enter a number from 1."))
    drawn = {}
    for collection in members_of(target):
        # Without aspects an answer cannot be graded: such queries are drawn only where no query has any.
        rows = Query.objects.filter(collection=collection, is_current=True)
        with_aspects = rows.filter(aspects__is_current=True).distinct()
        keys = dict((with_aspects if with_aspects.exists() else rows).values_list("external_id", "pk"))
        if not keys:
            raise BadInput(_("%(name)s has no queries") % {"name": collection.name})
        names = sorted(keys)
        # The name is part of the seed, so that the members of a suite are drawn independently.
        sample = random.Random(f"{seed}/{collection.name}").sample(names, min(per_member, len(names)))
        drawn[str(collection.pk)] = [keys[name] for name in sorted(sample)]
    return drawn


def sampled_queries(sample: AgentSample, collection: Collection) -> Sequence[Query]:
    """Return one collection's queries in a sample, in the sample's order."""
    keys = sample.queries.get(str(collection.pk), [])
    rows = Query.objects.in_bulk(keys)
    return [rows[key] for key in keys if key in rows]


def _of(target: Suite | Collection) -> dict[str, Any]:
    return {"suite": target} if isinstance(target, Suite) else {"collection": target}
