"""What exports take from comparisons of two documents: the votes about each couple, and grades from strengths."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.work.comparing import counting
from annotation.work.comparing.bradley_terry import fit
from annotation.work.comparing.counting import VotedCouple
from annotation.work.comparing.selectors import list_queries, read_outcomes
from corpus.errors import BadOption
from corpus.models import Collection
from store.sql import fetch_rows

# Only pairs whose texts are current.
PAIRS = """
SELECT id, query_id, document_id, query, document FROM current_pair
WHERE collection_id = %(collection)s AND query_id = ANY(%(queries)s) AND document_id = ANY(%(documents)s)
ORDER BY query COLLATE "C", document COLLATE "C"
"""


def read_couples(collection: Collection, options: ExportOptions) -> list[VotedCouple]:
    """Return the compared couples of all sets of a collection, with the votes that the option `labels` takes."""
    return counting.add_votes(counting.choose_sources(read_outcomes(collection), options.labels))


def read_pairs(collection: Collection, keys: set[tuple[int, int]]) -> list[tuple[int, int, int, str, str]]:
    """Return pair, query, document, query id and document id of these queries and documents, by their ids."""
    queries, documents = [query for query, _document in keys], [document for _query, document in keys]
    rows = fetch_rows(PAIRS, collection=collection.pk, queries=queries, documents=documents)
    return [row for row in rows if row[1:3] in keys]


def read_grades(collection: Collection, options: ExportOptions) -> tuple[list[tuple[str, str, int]], dict[str, Any]]:
    """Return query id, document id and grade of the compared documents, and for the manifest how they were graded.

    A grade is the number of thresholds that the document's strength reaches. Raises BadOption for
    thresholds that do not fit the collection's scale.
    """
    if options.thresholds and len(options.thresholds) != collection.grades:
        raise BadOption("thresholds", _("Give one number for each grade from 1 to %(n)s.") % {"n": collection.grades})
    strengths = {
        (query, document): strength.estimate
        for query, outcomes in list_queries(read_outcomes(collection), options.labels).items()
        for document, strength in fit(counting.count_wins(outcomes)).items()
    }
    thresholds = options.thresholds or counting.choose_thresholds(strengths.values(), collection.grades)
    rows = [
        (query_id, doc_id, counting.grade_strength(strengths[query, document], thresholds))
        for _pair, query, document, query_id, doc_id in read_pairs(collection, set(strengths))
    ]
    return rows, {
        "strengths": "Bradley-Terry, in log-odds, with mean 0 over the connected documents of a query",
        "answers_of": options.labels,
        "binned_by": "thresholds" if options.thresholds else "quantiles",
        "thresholds": [round(threshold, 6) for threshold in thresholds],
        "left_out": len(strengths) - len(rows),
    }
