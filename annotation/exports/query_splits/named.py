"""Names of splits in a set: the queries of each, by the ids that the set has, and those that kept lists hold out."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.query_splits.lists import NamedQueries, find_queries, list_names, list_splits
from corpus.errors import BadOption
from corpus.models import Collection, Label

SPLIT = 0.9
# With a relevant document: a split by near-duplicates and chance leaves ten of them at least.
DEV_QUERIES = 16


def find_named(
    sources: Sequence[tuple[Collection, str]], side: str, name: str
) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the ids of the queries that a name stands for, and what the manifest says of them.

    `sources`: collections, and what their ids begin with in the set. Raises BadInput where none has the name.
    """
    found = [(prefix, queries) for one, prefix in sources if (queries := find_queries(one, name)) is not None]
    if not found:
        known = ", ".join(sorted({known for one, _prefix in sources for known in list_names(one)})[:20])
        words = _("No kept list and no query's split is named %(name)s (for %(side)s). There are: %(known)s.")
        raise BadOption("split", words % {"name": name, "side": side, "known": known or _("none yet")})
    return {prefix + pk for prefix, queries in found for pk in queries.ids}, [q.described() for _prefix, q in found]


def hold_out(collection: Collection, prefix: str, names: Iterable[str]) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the ids of queries on kept lists that are not among `names`, and what the manifest says of the lists."""
    named = set(names)
    kept = [row for row in list_splits(collection) if row.name not in named]
    lists = [NamedQueries(row.name, collection.name, frozenset(row.query_ids), is_list=True) for row in kept]
    # A query on two lists is in the set as soon as one of them is named.
    held = {prefix + pk for queries in lists for pk in queries.ids} - fixed_ids(collection, prefix, named)
    return held, [queries.described() for queries in lists]


def fixed_ids(collection: Collection, prefix: str, names: Iterable[str]) -> set[str]:
    """Return the ids of the queries that names of splits stand for."""
    named = [find_queries(collection, name) for name in names]
    return {prefix + pk for queries in named if queries is not None for pk in queries.ids}


def suggest_split(collection: Collection) -> float:
    """Return the share of queries for training that leaves enough for a test of the gain: 0.9, or less where few are.

    Half of the dev queries choose the checkpoint and the others test it, so that fewer than ten make no test.
    """
    relevant = Label.objects.filter(
        pair__collection=collection, pair__query__is_current=True, aspect=None, grade__gte=collection.relevant_from
    )
    queries = relevant.values("pair__query").distinct().count()
    # Too few for both: half of them train.
    if queries < 2 * DEV_QUERIES:
        return 0.5 if queries else SPLIT
    return round(min(SPLIT, 1 - DEV_QUERIES / queries), 2)
