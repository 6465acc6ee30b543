"""Hard negatives from a run: documents that a system ranked and nobody judged.

They are marked `assumed`. One that the panel or a reranker scores high is more likely a hole than a
negative, and so is one that people are still to settle: those are left out unless asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.db import connection
from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.sets.choosing import Left
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
WANTED = """
    SELECT w.query, w.document, p.id, p.teacher_score, COALESCE(v.yes, 0)::int, COALESCE(v.votes, 0)::int,
           EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = p.id AND l.aspect_id IS NULL),
           EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict'))
    FROM unnest(%(query)s::bigint[], %(document)s::bigint[]) AS w(query, document)
    JOIN corpus_pair p ON p.query_id = w.query AND p.document_id = w.document
    LEFT JOIN last_votes(%(campaigns)s) v ON v.pair_id = p.id
"""


# Of existing pairs: pair, teacher's score, votes for relevant, votes, label?, people?
Known = dict[tuple[int, int], tuple[int, float | None, int, int, bool, bool]]


def add_assumed(queries: list[SetQuery], source: SetSource, asked: ExportOptions, left: Left) -> None:
    """Give every query the documents at the ranks asked for, and the judged ones among them their rank.

    Raises BadInput for a file that is no run, and for documents that the collection does not have.
    """
    ranked = _read_ranks({query.id.removeprefix(source.prefix) for query in queries}, asked)
    keys = _find_documents(source, {document for documents in ranked.values() for document in documents})
    for some in in_pieces(queries, QUERIES):
        new = {
            query.key: list(_new_rows(query, ranked[query.id.removeprefix(source.prefix)], keys, source.prefix))
            for query in some
        }
        rows = [row for rows in new.values() for row in rows]
        values = {"query": [row.query for row in rows], "document": [row.document for row in rows]}
        found = fetch_rows(WANTED, **values, campaigns=source.campaigns)
        known: Known = {(query, document): tuple(rest) for query, document, *rest in found}
        for query in some:
            kept = [row for row in new[query.key] if _may_enter(row, known, asked, left)]
            query.rows = sorted(query.rows + kept, key=lambda row: row.doc_id.encode())


def _read_ranks(wanted: set[str], asked: ExportOptions) -> dict[str, dict[str, int]]:
    """Read for each query of the set its documents at the ranks asked for, with their rank."""
    assert asked.run is not None
    first, last = asked.rank_range
    ranked: dict[str, dict[str, int]] = defaultdict(dict)
    seen: Counter[str] = Counter()
    for _line, query, document in top_of_run(Lines(asked.run), last):
        seen[query] += 1
        if query in wanted and seen[query] >= first:
            ranked[query][document] = seen[query]
    return ranked


def _find_documents(source: SetSource, names: set[str]) -> dict[str, int]:
    """Find the current documents by their ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT external_id, id FROM corpus_document
               WHERE collection_id = %s AND is_current AND external_id = ANY(%s)""",
            [source.collection.pk, sorted(names)],
        )
        found = dict(cursor.fetchall())
    if unknown := sorted(names - set(found)):
        words = _("The run names %(n)s documents that %(name)s does not have; the first: %(first)s.")
        values = {"n": len(unknown), "name": source.collection.name, "first": unknown[0]}
        raise BadOption("run", words % values)
    return found


def _new_rows(query: SetQuery, ranked: dict[str, int], keys: dict[str, int], prefix: str) -> Iterator[SetRow]:
    """Rows of documents without a label in the set; those with one get their rank."""
    labelled = {row.doc_id: row for row in query.rows}
    for own, rank in ranked.items():
        name, key = prefix + own, keys[own]
        if name in labelled:
            labelled[name].rank = rank
        else:
            yield SetRow(query.source, query.id, name, query.key, key, 0, 0, ORIGIN, False, assumed=True, rank=rank)


def _may_enter(row: SetRow, known: Known, asked: ExportOptions, left: Left) -> bool:
    """Complete the row from what is known about its pair; say whether it is taken as a negative."""
    pair = known.get((row.query, row.document))
    score = None
    if pair is not None:
        row.pair, score, row.yes, row.votes, has_label, waits = pair
        if has_label:  # judged, but not by those whose labels were asked for
            left[gettext_noop("in the run, with a label that is not included")] += 1
            return False
        high = (row.votes and row.yes / row.votes >= HIGH) or (score is not None and score >= HIGH) or waits
        if high and not asked.keep_holes:
            left[gettext_noop("in the run, but scored high or waiting for people (likely hole)")] += 1
            return False
    row.teacher = teacher_of(row, score, asked)
    return True


def identify_run(path: str) -> dict[str, str]:
    """Return what identifies a run in the manifest: not where it lies."""
    return {"name": Path(path).name, "sha256": hash_file(Path(path))}
