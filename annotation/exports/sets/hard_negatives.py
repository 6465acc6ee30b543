"""Hard negatives from a run: documents that a system ranked and that are not judged.

They are marked `assumed`. A document that the panel or a reranker scores high, or that waits for people,
is more likely relevant than a negative: such documents are left out, unless `keep_holes` is set.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.db import connection
from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.sets.choosing import LeftOutCounts
from annotation.exports.sets.rows import SetQuery, SetRow
from annotation.exports.sets.source import SetSource, in_pieces, teacher_of
from charts.translation import gettext_noop
from corpus.errors import BadOption
from corpus.formats.files import FileSource as Lines
from corpus.importing.run_lines import top_of_run
from store.files import hash_file
from store.sql import fetch_rows

HIGH = 0.5
QUERIES = 500
ORIGIN = "assumed"
READ_PAIRS = """
    SELECT w.query, w.document, p.id, p.teacher_score, COALESCE(v.yes, 0)::int, COALESCE(v.votes, 0)::int,
           EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = p.id AND l.aspect_id IS NULL),
           EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict'))
    FROM unnest(%(query)s::bigint[], %(document)s::bigint[]) AS w(query, document)
    JOIN corpus_pair p ON p.query_id = w.query AND p.document_id = w.document
    LEFT JOIN last_votes(%(campaigns)s) v ON v.pair_id = p.id
"""


# Existing pairs by query and document: pair, teacher's score, votes for relevant, votes, has a label, waits for people.
KnownPairs = dict[tuple[int, int], tuple[int, float | None, int, int, bool, bool]]


def add_assumed(queries: list[SetQuery], source: SetSource, options: ExportOptions, left_out: LeftOutCounts) -> None:
    """Add to every query the documents at the chosen ranks of the run, and set the ranks of its judged documents.

    Raises BadInput for an invalid run, and BadOption for documents that the collection does not have.
    """
    # By query id: the documents at the chosen ranks, with their rank.
    assert options.run is not None
    first, last = options.rank_range
    query_ids = {query.id.removeprefix(source.prefix) for query in queries}
    ranked: dict[str, dict[str, int]] = defaultdict(dict)
    ranks: Counter[str] = Counter()
    for _line, query_id, document in top_of_run(Lines(options.run), last):
        ranks[query_id] += 1
        if query_id in query_ids and ranks[query_id] >= first:
            ranked[query_id][document] = ranks[query_id]
    keys = _find_documents(source, {document for documents in ranked.values() for document in documents})
    for piece in in_pieces(queries, QUERIES):
        new_rows = {
            query.key: list(_new_rows(query, ranked[query.id.removeprefix(source.prefix)], keys, source.prefix))
            for query in piece
        }
        rows = [row for query_rows in new_rows.values() for row in query_rows]
        values = {"query": [row.query for row in rows], "document": [row.document for row in rows]}
        pair_rows = fetch_rows(READ_PAIRS, **values, campaigns=source.campaigns)
        known_pairs: KnownPairs = {(query, document): tuple(columns) for query, document, *columns in pair_rows}
        for query in piece:
            assumed_rows = [row for row in new_rows[query.key] if _may_enter(row, known_pairs, options, left_out)]
            query.rows = sorted(query.rows + assumed_rows, key=lambda row: row.doc_id.encode())


def _find_documents(source: SetSource, names: set[str]) -> dict[str, int]:
    """Return the primary keys of current documents by id. Raises BadOption for unknown ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT external_id, id FROM corpus_document
               WHERE collection_id = %s AND is_current AND external_id = ANY(%s)""",
            [source.collection.pk, sorted(names)],
        )
        ids = dict(cursor.fetchall())
    if unknown := sorted(names - set(ids)):
        words = _("The run names %(n)s documents that %(name)s does not have; the first: %(first)s.")
        values = {"n": len(unknown), "name": source.collection.name, "first": unknown[0]}
        raise BadOption("run", words % values)
    return ids


def _new_rows(query: SetQuery, ranked: dict[str, int], keys: dict[str, int], prefix: str) -> Iterator[SetRow]:
    """Yield the rows of ranked documents that the query does not have, and set the ranks of those that it has."""
    rows = {row.doc_id: row for row in query.rows}
    for external_id, rank in ranked.items():
        doc_id, key = prefix + external_id, keys[external_id]
        if doc_id in rows:
            rows[doc_id].rank = rank
        else:
            yield SetRow(query.source, query.id, doc_id, query.key, key, 0, 0, ORIGIN, False, assumed=True, rank=rank)


def _may_enter(row: SetRow, known_pairs: KnownPairs, options: ExportOptions, left_out: LeftOutCounts) -> bool:
    """Complete the row from its pair, if there is one. Return whether it is taken as a negative."""
    pair = known_pairs.get((row.query, row.document))
    score = None
    if pair is not None:
        row.pair, score, row.yes, row.votes, has_label, is_open = pair
        # A label of a source that was not chosen.
        if has_label:
            left_out[gettext_noop("in the run, with a label that is not included")] += 1
            return False
        is_hole = (row.votes and row.yes / row.votes >= HIGH) or (score is not None and score >= HIGH) or is_open
        if is_hole and not options.keep_holes:
            left_out[gettext_noop("in the run, but scored high or waiting for people (likely hole)")] += 1
            return False
    row.target_score = teacher_of(row, score, options)
    return True


def identify_run(path: str) -> dict[str, str]:
    """Return the name and the hash that identify a run in the manifest, without its folder."""
    return {"name": Path(path).name, "sha256": hash_file(Path(path))}
