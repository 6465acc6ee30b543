"""How often the queries of a collection were asked, by which the means of a report can be weighted."""

from math import isfinite

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from benchmark.models import Report
from corpus.errors import BadOption
from corpus.models import Collection, Query
from store.sql import fetch_row

COUNTS = "counts"  # Weights by the counts of a query log, in place of plain means.

# One text for all counts: it changes with each of them, also where only a query's current version changed.
MARK = """
SELECT md5(string_agg(id || ' ' || (metadata ->> 'count'), ',' ORDER BY id)) FROM corpus_query
WHERE collection_id = %(collection)s AND metadata ? 'count'
"""


def has_counts(collection: Collection) -> bool:
    """Return whether any query of the collection has a count."""
    return Query.objects.filter(collection=collection, is_current=True, metadata__has_key="count").exists()


def counts_mark(collection: Collection) -> str:
    """Return a text that identifies the counts of all queries. Raises BadOption where no query has one."""
    (mark,) = fetch_row(MARK, collection=collection.pk)
    if not mark:
        raise BadOption("weights", no_counts(collection))
    return str(mark)


def no_counts(collection: Collection) -> str:
    """Return the sentence for a collection whose means cannot be weighted."""
    message = _("No query of %(collection)s has a count: import a query log with counts first.")
    return message % {"collection": collection.name}


def counts_of(collection: Collection) -> dict[int, float]:
    """Return how often each query was asked, by key; queries without a number above 0 are left out."""
    counts: dict[int, float] = {}
    rows = Query.objects.filter(collection=collection, metadata__has_key="count").values_list("pk", "metadata__count")
    for key, value in rows.iterator():
        try:
            # Tables of queries keep their columns as texts.
            count = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if isfinite(count) and count > 0:
            counts[key] = count
    return counts


def reports_by(weights: str, reports: QuerySet[Report]) -> QuerySet[Report]:
    """Return the reports with these weights: COUNTS, or "" for plain means, which nothing mixes with weighted ones."""
    is_weighted = Q(options__has_key="weights")
    return reports.filter(is_weighted if weights else ~is_weighted)
