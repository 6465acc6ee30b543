"""JSON lines of preferences between two documents of a query, in the columns of TRL's DPO and reward trainers."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.files import ExportFiles
from annotation.exports.label_sources.comparisons import read_couples, read_pairs
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import LinesWriter, LoadedQuery
from annotation.exports.sets.choosing import LeftOutCounts
from annotation.exports.sets.rows import SetRow
from annotation.exports.sets.source import SetSource
from annotation.work.comparing.counting import BOTH_BAD, EQUAL, FIRST, SECOND, VotedCouple
from charts.translation import gettext_noop
from corpus.errors import BadInput


def read_preference_rows(source: SetSource, options: ExportOptions, left_out: LeftOutCounts) -> list[SetRow]:
    """Return the documents of all comparisons in which most votes prefer one. Raises BadInput without any.

    A row is relevant where its document was preferred more often than not, for the counts alone.
    """
    decided = [couple for couple in read_couples(source.collection, options) if couple.majority in (FIRST, SECOND)]
    balance: dict[tuple[int, int], int] = defaultdict(int)
    for couple in decided:
        won = 1 if couple.majority == FIRST else -1
        balance[couple.query_id, couple.first_id] += won
        balance[couple.query_id, couple.second_id] -= won
    if not balance:
        words = _("No comparison of %(name)s has a document that most votes prefer.")
        raise BadInput(words % {"name": source.collection.name})
    name, prefix, rows = source.collection.name, source.prefix, []
    for pair, query, document, query_id, doc_id in read_pairs(source.collection, set(balance)):
        relevant = balance[query, document] > 0
        row = SetRow(name, prefix + query_id, prefix + doc_id, query, document, pair, int(relevant), "", relevant)
        row.origin, row.target_score = "comparisons", float(relevant)
        rows.append(row)
    left_out[gettext_noop("a text of it has a newer version")] += len(balance) - len(rows)
    return rows


class PreferenceWriter(LinesWriter):
    """Writer of a line for each comparison with a preferred document: `prompt`, `chosen`, `rejected`, ids and votes."""

    def __init__(self, files: ExportFiles, options: ExportOptions, sources: list[SetSource]) -> None:
        super().__init__(files)
        self.answers_of = options.labels
        self.couples: dict[int, list[VotedCouple]] = defaultdict(list)
        for source in sources:
            for couple in read_couples(source.collection, options):
                self.couples[couple.query_id].append(couple)

    def build_lines(self, query: LoadedQuery) -> Iterator[dict[str, Any]]:
        rows = {row.document: row for row in query.rows}
        for couple in self.couples[query.set_query.key]:
            first, second = rows.get(couple.first_id), rows.get(couple.second_id)
            if couple.majority not in (FIRST, SECOND) or first is None or second is None:
                continue
            preferred, other = (first, second) if couple.majority == FIRST else (second, first)
            votes = couple.votes
            yield {
                "prompt": query.text,
                "chosen": query.document_of(preferred).full_text,
                "rejected": query.document_of(other).full_text,
                "query_id": query.id,
                "chosen_id": preferred.doc_id,
                "rejected_id": other.doc_id,
                "chosen_votes": votes[couple.majority],
                "rejected_votes": votes[SECOND if couple.majority == FIRST else FIRST],
                "equal_votes": votes[EQUAL],
                "both_bad_votes": votes[BOTH_BAD],
            }

    def end(self) -> dict[str, Any]:
        """Return how many comparisons have a preferred document, and how many were left out, by reason."""
        majorities = [couple.majority for couples in self.couples.values() for couple in couples]
        return {
            "comparisons": {
                "answers_of": self.answers_of,
                "compared": len(majorities),
                "preferred": sum(majority in (FIRST, SECOND) for majority in majorities),
                "equal": majorities.count(EQUAL),
                "both_bad": majorities.count(BOTH_BAD),
                "no_majority": majorities.count(None),
            }
        }
