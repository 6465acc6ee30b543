"""ERank's JSON lines: a score 0 to 10 with its chain for drawn documents (ERank C)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.rows import fetch_batches
from annotation.exports.sets.batches import Filled, LinesWriter
from annotation.exports.sets.choosing import Left
from annotation.exports.sets.rows import SetRow, newest_label
from annotation.exports.sets.source import SetSource, in_pieces
from charts.translation import gettext_noop
from corpus.errors import BadInput
from judges.domain.chains import HIGHEST, SYSTEM, render_answer, render_prompt
from judges.retrieval.synthesis import KINDS, read_scored_pairs
from store.sql import read_sql

# The drawn documents of each query, as the newest synthesize_scores of the query drew them.
SCORED = read_sql(__file__, "read_scored")


def read_scored_rows(source: SetSource, asked: ExportOptions, left: Left) -> list[SetRow]:
    """Return the drawn documents of all queries whose generations are whole. Raises BadInput where there are none."""
    name, prefix = source.collection.name, source.prefix
    relevant_from = asked.relevant_from or source.collection.relevant_from
    rows = []
    for batch in fetch_batches(SCORED, {"collection": source.collection.pk, "kinds": list(KINDS)}):
        for pair, campaign, query, document, query_id, doc_id, grade, origin, labelled_at in batch:
            relevant = grade is not None and grade >= relevant_from
            row = SetRow(name, prefix + query_id, prefix + doc_id, query, document, pair, grade or 0, "", relevant)
            row.origin, row.assumed, row.campaign = origin or "assumed", grade is None, campaign
            row.labelled_at = labelled_at
            rows.append(row)
    if not rows:
        words = _("No document of %(name)s has a score with its chain: run synthesize_scores %(name)s first")
        raise BadInput(words % {"name": name})
    incomplete = {row.query: reason for some in in_pieces(rows) for row, reason in _find_gaps(some)}
    for row in rows:
        if row.query in incomplete:  # a whole query goes, as in the paper
            left[incomplete[row.query]] += 1
    return [row for row in rows if row.query not in incomplete]


def _find_gaps(rows: Sequence[SetRow]) -> Iterator[tuple[SetRow, str]]:
    """Give each row the teacher's score, and yield those without one, or that are too long."""
    for campaign in {row.campaign for row in rows}:
        mine = [row for row in rows if row.campaign == campaign]
        found = read_scored_pairs(campaign, [row.pair for row in mine])
        for row in mine:
            if row.pair not in found:
                yield row, gettext_noop("its query has a document without a score")
            elif found[row.pair].too_long:
                yield row, gettext_noop("its query has an answer of more than 2,048 tokens")
            else:
                row.teacher = found[row.pair].generations[found[row.pair].kept].score / HIGHEST


class Chains(LinesWriter):
    """Writes a line for each document. It is given no pair without a score."""

    marks_rows = True

    def lines(self, filled: Filled) -> Iterator[dict[str, Any]]:
        for row in filled.query.rows:
            found = filled.scored[row.pair]
            kept, text = found.generations[found.kept], filled.documents[row.document].whole
            yield {
                "query_id": row.query_id,
                "doc_id": row.doc_id,
                "instruction": filled.instruction,
                "query": filled.text.text,
                "document": text,
                "chain": kept.chain,
                "prompt": render_prompt(filled.text.text, text, filled.instruction),
                "completion": render_answer(kept.chain, kept.score),
                "score": kept.score,
                "positive": row.relevant,
                "assumed": row.assumed,  # Nobody judged it: no grade, when it is imported again.
                "k": len(found.generations),
                "mean": found.mean,
                "kind": found.kind,
                "synthetic": filled.query.synthetic,
                "labelled_at": newest_label([row]),
            }

    def end(self) -> dict[str, Any]:
        """Return which prompt it was."""
        return {"prompt_sha256": sha256(SYSTEM.encode()).hexdigest()}
