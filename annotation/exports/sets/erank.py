"""ERank's JSON lines: scores from 0 to 10 with their chains of thought, for drawn documents (ERank C)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.rows import fetch_batches
from annotation.exports.sets.batches import LinesWriter, LoadedQuery
from annotation.exports.sets.choosing import LeftOutCounts
from annotation.exports.sets.rows import SetRow, newest_label_time
from annotation.exports.sets.source import SetSource, in_pieces
from charts.translation import gettext_noop
from corpus.errors import BadInput
from judges.domain.chains import HIGHEST, SYSTEM, render_answer, render_prompt
from judges.retrieval.synthesis import KINDS, read_scored_pairs
from store.sql import read_sql

# The documents that the newest synthesize_scores of each query drew.
READ_SCORED = read_sql(__file__, "read_scored")


def read_scored_rows(source: SetSource, options: ExportOptions, left_out: LeftOutCounts) -> list[SetRow]:
    """Return the drawn documents of all queries with complete generations. Raises BadInput without any document."""
    name, prefix = source.collection.name, source.prefix
    relevant_from = options.relevant_from or source.collection.relevant_from
    rows = []
    for batch in fetch_batches(READ_SCORED, {"collection": source.collection.pk, "kinds": list(KINDS)}):
        for pair, campaign, query, document, query_id, doc_id, grade, origin, labelled_at in batch:
            relevant = grade is not None and grade >= relevant_from
            row = SetRow(name, prefix + query_id, prefix + doc_id, query, document, pair, grade or 0, "", relevant)
            row.origin, row.assumed, row.campaign = origin or "assumed", grade is None, campaign
            row.labelled_at = labelled_at
            rows.append(row)
    if not rows:
        words = _("No document of %(name)s has a score with its chain: run synthesize_scores %(name)s first")
        raise BadInput(words % {"name": name})
    # Incomplete queries are left out as a whole, as in the paper.
    incomplete_queries = {row.query: reason for piece in in_pieces(rows) for row, reason in _find_gaps(piece)}
    for row in rows:
        if row.query in incomplete_queries:
            left_out[incomplete_queries[row.query]] += 1
    return [row for row in rows if row.query not in incomplete_queries]


def _find_gaps(rows: Sequence[SetRow]) -> Iterator[tuple[SetRow, str]]:
    """Set the teacher's score of each row, and yield rows without one or with too long an answer, with the reason."""
    for campaign in {row.campaign for row in rows}:
        campaign_rows = [row for row in rows if row.campaign == campaign]
        scored_pairs = read_scored_pairs(campaign, [row.pair for row in campaign_rows])
        for row in campaign_rows:
            if row.pair not in scored_pairs:
                yield row, gettext_noop("its query has a document without a score")
            elif scored_pairs[row.pair].too_long:
                yield row, gettext_noop("its query has an answer of more than 2,048 tokens")
            else:
                row.target_score = scored_pairs[row.pair].generations[scored_pairs[row.pair].kept].score / HIGHEST


class ErankWriter(LinesWriter):
    """Writer of a line for each document, all of which have a score."""

    marks_synthetic_lines = True

    def build_lines(self, query: LoadedQuery) -> Iterator[dict[str, Any]]:
        for row in query.rows:
            scored = query.scored[row.pair]
            generation, text = scored.generations[scored.kept], query.document_of(row).full_text
            yield {
                "query_id": row.query_id,
                "doc_id": row.doc_id,
                "instruction": query.instruction,
                "query": query.text,
                "document": text,
                "chain": generation.chain,
                "prompt": render_prompt(query.text, text, query.instruction),
                "completion": render_answer(generation.chain, generation.score),
                "score": generation.score,
                "positive": row.relevant,
                "assumed": row.assumed,  # Not judged, so it has no grade when the file is imported.
                "k": len(scored.generations),
                "mean": scored.mean,
                "kind": scored.kind,
                "synthetic": query.synthetic,
                "labelled_at": newest_label_time([row]),
            }

    def end(self) -> dict[str, Any]:
        """Return the hash of the prompt."""
        return {"prompt_sha256": sha256(SYSTEM.encode()).hexdigest()}
