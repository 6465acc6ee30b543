"""How often the queries of a collection were asked, by which the means of a report can be weighted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from benchmark.models import Report
from benchmark.significance.query_weights import weights_by_count
from corpus.errors import BadOption
from corpus.models import Collection, Query
from store.sql import fetch_row

COUNTS = "counts"  # Weights by the counts of a query log, in place of plain means.

# One text for all counts: it changes with each of them, also where only a query's current version changed.
MARK = """
SELECT md5(string_agg(id || ' ' || (metadata ->> 'count'), ',' ORDER BY id)) FROM corpus_query
WHERE collection_id = %(collection)s AND metadata ? 'count'
"""


@dataclass(frozen=True)
class MeansChoice:
    """How the means of a page are weighted. `has_counts`: they can be by counts; `weights`: COUNTS, or "" for plain.

    `is_by_traffic`: queries were drawn in proportion to their counts (pptss), so that weights count the traffic twice.
    """

    has_counts: bool
    weights: str
    is_by_traffic: bool = False

    @property
    def query(self) -> str:
        """The choice in the query of an address; "" for plain means."""
        return f"weights={self.weights}" if self.weights else ""

    @property
    def suffix(self) -> str:
        """The choice as the end of an address without a query."""
        return f"?{self.query}" if self.weights else ""

    @classmethod
    def of(cls, collections: Sequence[Collection], weights: str) -> "MeansChoice":
        """Read the choice as a page's address has it; means stay plain where a collection has no counts."""
        is_offered = bool(collections) and all(map(has_counts, collections))
        drawn = Query.objects.filter(collection__in=collections, is_current=True, metadata__sampled_by="pptss")
        is_by_traffic = is_offered and drawn.exists()
        return cls(is_offered, COUNTS if weights == COUNTS and is_offered else "", is_by_traffic)


def has_counts(collection: Collection) -> bool:
    """Return whether any current query of the collection has a count: a number above 0."""
    return any(_counted(collection, is_current=True))


def counts_mark(collection: Collection) -> str:
    """Return a text that identifies the counts of all queries. Raises BadOption where no query has one."""
    (mark,) = fetch_row(MARK, collection=collection.pk)
    if not mark or not any(_counted(collection)):
        raise BadOption("weights", no_counts(collection))
    return str(mark)


def no_counts(collection: Collection) -> str:
    """Return the sentence for a collection whose means cannot be weighted."""
    message = _("No query of %(collection)s has a count: import a query log with counts first.")
    return message % {"collection": collection.name}


def counts_of(collection: Collection) -> dict[int, float]:
    """Return how often each query was asked, by key; queries without a number above 0 are left out."""
    return dict(_counted(collection))


def _counted(collection: Collection, **only: Any) -> Iterator[tuple[int, float]]:
    queries = Query.objects.filter(collection=collection, metadata__has_key="count", **only)
    for key, value in queries.values_list("pk", "metadata__count").iterator():
        try:
            # Tables of queries keep their columns as texts.
            count = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if isfinite(count) and count > 0:
            yield key, count


def weights_in(report: Report, queries: Sequence[int]) -> NDArray[np.float64] | None:
    """Return the weights of these queries in the means of a report, on average 1; None for plain means."""
    if not report.options.get("weights"):
        return None
    counts = counts_of(report.collection)
    return weights_by_count([counts.get(query) for query in queries])


def reports_by(weights: str, reports: QuerySet[Report]) -> QuerySet[Report]:
    """Return the reports with these weights: COUNTS, or "" for plain means, which nothing mixes with weighted ones."""
    is_weighted = Q(options__has_key="weights")
    return reports.filter(is_weighted if weights else ~is_weighted)
