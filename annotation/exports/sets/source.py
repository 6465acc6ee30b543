"""Reader of the pairs, votes and texts of a set, in the snapshot's transaction."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from annotation.agreement.grade_matrix import vote_names
from annotation.exports.label_sources.aggregated_labels import aggregate_labels
from annotation.exports.label_sources.benchmark_tables import find_version
from annotation.exports.label_sources.failed_routes import list_unsettled_pairs
from annotation.exports.options import ExportOptions
from annotation.exports.rows import fetch_batches
from annotation.exports.sets.choosing import ORIGINS_OF_PEOPLE, LeftOutCounts
from annotation.exports.sets.rows import SetRow
from charts.translation import gettext_noop
from corpus.errors import BadOption
from corpus.models import Collection
from judges.campaigns.selectors import campaigns_that_count
from store.sql import fetch_rows, read_sql

PIECE = 2_000  # Number of texts in memory at a time.
# Exponent of the released code, for the mean of its two teachers; the paper uses one score unchanged.
EXPONENT = 1.609
READ_ROWS = read_sql(__file__, "read_rows")
READ_QRELS = read_sql(__file__, "read_qrels_rows")
NO_LABELS: dict[str, list[Any]] = {
    name: [] for name in ("label_pairs", "label_grades", "label_origins", "label_posteriors")
}
LABELLED = """
SELECT p.id FROM corpus_label l JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = %(collection)s
WHERE l.aspect_id IS NULL
"""
VOTERS = "SELECT DISTINCT campaign_id FROM last_votes(%(campaigns)s)"
DOCUMENTS = "SELECT id, external_id, title, text, metadata FROM corpus_document WHERE id = ANY(%(keys)s)"
CORPUS = """
SELECT external_id, title, text, metadata FROM corpus_document
WHERE collection_id = %(collection)s AND is_current ORDER BY external_id COLLATE "C"
"""
QUERIES = "SELECT id, external_id, instruction, text, metadata, answers FROM corpus_query WHERE id = ANY(%(keys)s)"
# Each vote has its number among those of the same judge: a sampled model votes several times.
VOTES = """
SELECT a.pair_id, a.judge_id,
       (SELECT count(*) FROM unnest(c.voters[1:a.place]) AS before WHERE before = a.judge_id), a.verdict
FROM last_votes(NULL, %(pairs)s) last
JOIN counted_attempt a ON a.pair_id = last.pair_id AND a.campaign_id = last.campaign_id
JOIN judges_campaign c ON c.id = a.campaign_id
WHERE a.role = 'vote' AND a.outcome = 'labelled'
ORDER BY a.pair_id, a.place
"""


@dataclass(frozen=True, slots=True)
class SetText:
    """A document, or a query, whose `title` is its own instruction."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]
    answers: list[str] = field(default_factory=list)

    @property
    def full_text(self) -> str:
        """Title and text, on lines of their own: the text that a model reads."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class SetSource:
    """A collection from which a set is drawn."""

    def __init__(self, collection: Collection, prefix: str = "") -> None:
        self.collection = collection
        self.prefix = prefix
        # Descriptions for the manifest, of labels other than the current ones and of held-out queries.
        self.described: dict[str, Any] = {}
        self.campaigns = list(campaigns_that_count(collection).values_list("pk", flat=True))

    @cached_property
    def judges(self) -> dict[tuple[int, int], str]:
        """Names of the judges whose votes are the newest of some pair, by judge and sample."""
        return vote_names([campaign for (campaign,) in fetch_rows(VOTERS, campaigns=self.campaigns)])

    def rows(self, options: ExportOptions, left_out: LeftOutCounts) -> list[SetRow]:
        """Return labelled pairs, ordered by query id and document id."""
        origins = list(options.origins) if options.origins is not None else None
        if options.labels == "people":
            origins = [origin for origin in ORIGINS_OF_PEOPLE if origins is None or origin in origins]
        unresolved = list_unsettled_pairs(self.collection) if options.leave_out_failed else []
        parameters = {"collection": self.collection.pk, "campaigns": self.campaigns, "origins": origins}
        parameters |= {"left_out": unresolved, "qrels": options.qrels}
        sql = READ_ROWS
        labels: dict[str, Any] = {"labels": "machine" if options.labels == "machine" else "resolved", **NO_LABELS}
        if options.qrels is not None:
            self.described["qrels"] = find_version(self.collection, options.qrels)
            sql, labels = READ_QRELS, {}
        elif options.aggregate is not None:
            aggregated = aggregate_labels(self.collection, options.aggregate, options.assessors)
            left_out[gettext_noop("its grades have no majority")] += aggregated.ties
            self.described["aggregate"] = aggregated.described
            labels = {"labels": "made", **aggregated.columns}
        rows = [self._row(values, options) for batch in fetch_batches(sql, parameters | labels) for values in batch]
        if options.qrels is not None:
            left_out[gettext_noop("a text of it has a newer version")] += self.described["qrels"]["judged"] - len(rows)
        elif origins is not None or options.labels == "machine":
            labelled = {pair for batch in fetch_batches(LABELLED, parameters) for (pair,) in batch}
            missing = labelled - set(unresolved) - {row.pair for row in rows}
            left_out[gettext_noop("no label from the selected sources")] += len(missing)
        if unresolved:
            left_out[gettext_noop("unresolved, from a route that failed its label audit")] += len(unresolved)
        return rows

    def _row(self, values: Sequence[Any], options: ExportOptions) -> SetRow:
        pair, query, document, query_id, doc_id, grade, origin, score, yes, votes, panel, at, posterior = values
        relevant = grade >= (options.relevant_from or self.collection.relevant_from)
        name, query_id, doc_id = self.collection.name, self.prefix + query_id, self.prefix + doc_id
        row = SetRow(name, query_id, doc_id, query, document, pair, grade, origin, relevant, yes=yes, votes=votes)
        row.panel, row.labelled_at, row.posterior = panel, at, posterior
        row.target_score = teacher_of(row, score, options)
        return row


def teacher_of(row: SetRow, score: float | None, options: ExportOptions) -> float | None:
    """Return the pair's score by the chosen teacher, in [0, 1]; None if it has none."""
    if options.teacher == "scores":
        if options.preset == "released" and score is not None and 0 <= score <= 1:
            return float(score**EXPONENT)
        return score
    return row.annotated_score if options.teacher == "votes" else float(row.relevant)


def check_teacher(rows: Iterable[SetRow], options: ExportOptions) -> None:
    """Raise BadOption for missing or invalid teacher scores."""
    rows = [row for row in rows if not row.assumed]
    if options.teacher == "votes" and rows and all(row.target_score is None for row in rows):
        raise BadOption(
            "teacher",
            _(
                "No pair has a vote from every judge: choose labels, or run a campaign with the policy ensemble or "
                "debate+ensemble and without an early stop."
            ),
        )
    if options.teacher != "scores":
        return
    missing = [row for row in rows if row.target_score is None]
    if missing:
        words = _(
            "%(missing)s of %(all)s pairs have no teacher score (the first: query %(query)s, document %(document)s): "
            "import scores with the pairs, ask a rerank API with teacher_scores, or choose votes or labels."
        )
        first = {"query": missing[0].query_id, "document": missing[0].doc_id}
        raise BadOption("teacher", words % {"missing": len(missing), "all": len(rows), **first})
    invalid = next((row for row in rows if row.target_score is not None and not 0 <= row.target_score <= 1), None)
    if invalid is not None:
        words = _(
            "Query %(query)s, document %(document)s: the teacher score %(score)s is not between 0 and 1. Import the "
            "pairs again with scores on that scale, and update what changed."
        )
        values = {"query": invalid.query_id, "document": invalid.doc_id, "score": f"{invalid.target_score:g}"}
        raise BadOption("teacher", words % values)


def read_documents(keys: Sequence[int]) -> dict[int, SetText]:
    """Read documents by primary key."""
    return _read_texts(DOCUMENTS, keys)


def read_digests(keys: Sequence[int]) -> dict[int, str]:
    """Read a digest of each document's title and text, by primary key."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, md5(title || E'\\n' || text) FROM corpus_document WHERE id = ANY(%s)", [list(keys)])
        return dict(cursor.fetchall())


def read_queries(keys: Sequence[int]) -> dict[int, SetText]:
    """Read queries by primary key; `title` is the query's own instruction."""
    return _read_texts(QUERIES, keys)


READ_ANSWERS = """
    SELECT a.id, a.api, a.url, a.model, q.external_id,
           array_agg(d.external_id ORDER BY w.place) AS documents, a.raw
    FROM annotation_teacheranswer a CROSS JOIN unnest(a.pairs) WITH ORDINALITY AS w(pair, place)
    JOIN corpus_pair p ON p.id = w.pair
    JOIN corpus_query q ON q.id = p.query_id
    JOIN corpus_document d ON d.id = p.document_id
    WHERE a.collection_id = %(collection)s AND EXISTS (SELECT FROM annotation_teacherscore s WHERE s.answer_id = a.id)
    GROUP BY a.id, q.external_id ORDER BY a.id
"""


def teacher_answers(source: "SetSource") -> Iterator[dict[str, Any]]:
    """Yield every stored answer of a rerank API that contains scores, with the ids of its query and documents."""
    for batch in fetch_batches(READ_ANSWERS, {"collection": source.collection.pk}):
        for _answer, api, url, model, query, names, raw in batch:
            yield {
                "api": api,
                "url": url,
                "model": model,
                "query_id": source.prefix + query,
                "doc_ids": [source.prefix + name for name in names],
                "answer": raw,
            }


def read_corpus(source: "SetSource") -> Iterator[SetText]:
    """Yield the current documents of a collection, by id."""
    for batch in fetch_batches(CORPUS, {"collection": source.collection.pk}):
        for values in batch:
            yield _build_text([source.prefix + values[0], *values[1:]])


def _build_text(values: Sequence[Any]) -> SetText:
    name, title, text, metadata, *answers = values
    # Django's cursors return JSON as text.
    parsed = json.loads(metadata) if isinstance(metadata, str) else metadata
    return SetText(name, title, text, parsed, *answers)


def _read_texts(sql: str, keys: Sequence[int]) -> dict[int, SetText]:
    return {key: _build_text(values) for key, *values in fetch_rows(sql, keys=list(set(keys)))}


def read_votes(pairs: Sequence[int]) -> dict[int, dict[tuple[int, int], int]]:
    """Read the newest complete votes of each pair, by judge and sample: the pair's score is from them."""
    votes: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
    for pair, judge, sample, verdict in fetch_rows(VOTES, pairs=list(pairs)):
        votes[pair][judge, sample] = verdict
    return dict(votes)


def in_pieces(keys: Sequence[Any], size: int = PIECE) -> Iterator[Sequence[Any]]:
    """Yield the keys in pieces of this size."""
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
