"""Writing of a rating format: its pairs from PostgreSQL, their ratings, and its file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from annotation.exports import files
from annotation.exports.label_sources.aggregated_labels import AggregatedLabels
from annotation.exports.label_sources.benchmark_tables import find_endpoint
from annotation.exports.options import ExportOptions
from annotation.exports.ratings.documents import (
    DEPTH,
    METRIC,
    JsonDocument,
    RatedPair,
    describe_book,
    describe_judgments,
    describe_rank_eval,
)
from annotation.exports.ratings.requests import read_template
from annotation.exports.ratings.scales import choose_ratings
from annotation.exports.rows import AGGREGATED_LABELS, BATCH, LABELS, Row, fetch_batches
from corpus.labels import grade_label
from corpus.models import Collection

EXCERPT = 1_000  # Characters of a document in a book of Quepid.
QUERY, DOCUMENT, GRADE, TEXT = 0, 1, 2, 4  # Columns of the statement below.
# Queries in the order of their ids, or of their texts where a tool knows a query by its text.
RATED = """
SELECT r.query, r.document, r.grade, r.origin, q.text, d.title, left(d.text, %(excerpt)s)
FROM ({labels}) r
JOIN corpus_query q ON q.collection_id = %(collection)s AND q.external_id = r.query AND q.is_current
JOIN corpus_document d ON d.collection_id = %(collection)s AND d.external_id = r.document AND d.is_current
ORDER BY {order} COLLATE "C", r.document COLLATE "C", r.query COLLATE "C"
"""


def write_ratings(
    export_files: files.ExportFiles,
    collection: Collection,
    options: ExportOptions,
    labels: Mapping[str, Any],
    aggregated: AggregatedLabels | None,
    progress: files.Progress,
) -> tuple[files.Counts, dict[str, Any]]:
    """Write the file of a rating format; return the counts of the manifest, and its description of the ratings.

    `labels`: which labels, as parameters of their SQL statements. Raises BadOption for a scale or an endpoint
    that does not fit.
    """
    form = options.form
    assert form.rates is not None
    ratings = choose_ratings(form.rates, collection.grades, options.scale)
    details: dict[str, Any] = {
        "scale": {str(grade): rating for grade, rating in ratings.items()},
        "scale_by": "option" if options.scale else "default",
    }
    document: JsonDocument | None = None
    if form.name == "srw":
        document = describe_judgments(collection.name, ratings)
    elif form.name == "rank-eval":
        settings = find_endpoint(options.endpoint) if options.endpoint else {}
        index = options.index or str(settings.get("index") or collection.name)
        document = describe_rank_eval(index, read_template(settings, DEPTH))
        details |= {"endpoint": options.endpoint, "index": index, "metric": METRIC}
    elif form.name == "quepid-book":
        names = {grade: grade_label(grade, collection.grades, collection.grade_names) for grade in ratings}
        document = describe_book(collection.name, ratings, names)
    statement = RATED.format(
        labels=LABELS if aggregated is None else AGGREGATED_LABELS, order="q.text" if form.by_text else "r.query"
    )
    excerpt = EXCERPT if form.name == "quepid-book" else 0
    parameters = {**labels, "excerpt": excerpt, **(aggregated.columns if aggregated is not None else {})}
    batches = fetch_batches(statement, parameters)
    pairs = _RatedPairs(batches, ratings, by_text=form.by_text)
    if document is None:
        counts = files.write_rows(export_files, form, pairs, progress)
    else:
        counts = files.write_document(export_files, form, document, pairs, progress)
    if form.name == "ranklib":
        details["qids"] = pairs.queries
    if pairs.ambiguous:
        details["left_out_with_same_text"] = pairs.ambiguous
    return counts, details


class _RatedPairs:
    """The pairs of the labels with their ratings, in batches.

    Several queries may have one text: where a tool knows queries by their texts, a document that they label
    alike is written once, and one that they label differently is left out (`ambiguous`).
    """

    def __init__(self, batches: Iterable[Sequence[Row]], ratings: Mapping[int, float], *, by_text: bool) -> None:
        self._batches, self._ratings, self._by_text = batches, ratings, by_text
        self.queries: list[str] = []  # The key of query 1, 2, and so on.
        self.ambiguous = 0

    def __iter__(self) -> Iterator[list[RatedPair]]:
        rows = chain.from_iterable(self._batches)
        groups = groupby(rows, key=itemgetter(TEXT if self._by_text else QUERY, DOCUMENT))
        while keyed_rows := [(key, list(group)) for key, group in islice(groups, BATCH)]:
            pairs = []
            for (key, doc_id), same_rows in keyed_rows:
                _query, _document, grade, origin, *texts = same_rows[0]
                if any(row[GRADE] != grade for row in same_rows):
                    self.ambiguous += 1
                    continue
                if self.queries[-1:] != [key]:
                    self.queries.append(key)
                pairs.append(RatedPair(key, doc_id, grade, origin, self._ratings[grade], len(self.queries), *texts))
            yield pairs
