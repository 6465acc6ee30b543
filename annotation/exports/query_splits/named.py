"""Splits of a training set by name: the ids of their queries in the set, and those of held-out lists."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.query_splits.lists import find_queries, list_names
from corpus.errors import BadOption
from corpus.models import Collection


def find_named(
    sources: Sequence[tuple[Collection, str]], side: str, name: str
) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the ids of the queries of a named split, and the description of the split for the manifest.

    `sources`: collections, each with the prefix of its ids in the set. Raises BadOption where none has the name.
    """
    matches = [
        (prefix, queries) for collection, prefix in sources if (queries := find_queries(collection, name)) is not None
    ]
    if not matches:
        names = {split_name for collection, _prefix in sources for split_name in list_names(collection)}
        known_names = ", ".join(sorted(names)[:20]) or _("none yet")
        words = _("No kept list and no query's split is named %(name)s (for %(side)s). There are: %(known)s.")
        raise BadOption("split", words % {"name": name, "side": side, "known": known_names})
    ids = {prefix + query_id for prefix, queries in matches for query_id in queries.ids}
    return ids, [queries.described() for _prefix, queries in matches]


def fixed_ids(collection: Collection, prefix: str, names: Iterable[str]) -> set[str]:
    """Return the ids of the queries of named splits."""
    splits = [find_queries(collection, name) for name in names]
    return {prefix + query_id for queries in splits if queries is not None for query_id in queries.ids}
