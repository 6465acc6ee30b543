"""Votes of people as the database has them: those whose arm was drawn by lot, and those of paired studies."""

from datetime import date

from django.db import connection

from annotation.experiments.paired import JudgedPair, judged_pairs
from annotation.experiments.votes import Vote
from annotation.models import Study
from corpus.collections.task_order import MEASURING
from corpus.labels import join_reference
from corpus.models import Collection

# Newest votes that are looked at: the intervals are narrow by then, and a page does not wait.
MOST = 20_000

_TRUTH = join_reference("j.pair_id")

# At work: the time on the page without the idle part.
_SECONDS = "(j.milliseconds - coalesce(j.idle_milliseconds, 0)) / 1000.0::float8"

# An audit is always blind, and a study chooses: neither is drawn by lot, so neither is compared with what is.
DRAWN = f"""
SELECT j.item_id, j.assessor_id, split_part(j.arm, ':', 1), j.step, j.grade >= %(relevant)s,
       gold.grade >= %(relevant)s, {_SECONDS}, j.arm <> 'reveal:seen', j.grade
FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id JOIN corpus_item i ON i.id = j.item_id {_TRUTH}
WHERE a.collection_id = %(collection)s AND a.kind = 'person' AND j.step IN ('first', 'final')
  AND i.arm <> '' AND i.reason <> 'audit' AND i.reason <> ALL (%(others)s)
  AND (%(since)s::date IS NULL OR j.created_at >= %(since)s::date)
ORDER BY j.id DESC LIMIT %(most)s
"""

# Everybody's final vote on the pairs of one study, whichever group they belong to: the item's arm says which.
STUDIED = f"""
SELECT j.pair_id, i.arm, j.grade >= %(relevant)s, {_SECONDS}, gold.grade >= %(relevant)s
FROM annotation_studyitem s JOIN corpus_item i ON i.id = s.item_id JOIN current_judgment j ON j.item_id = i.id
JOIN corpus_assessor a ON a.id = j.assessor_id {_TRUTH}
WHERE s.study_id = %(study)s AND a.kind = 'person' AND j.step = 'final'
ORDER BY j.pair_id, i.arm, j.id
"""


def drawn_votes(collection: Collection, since: date | None = None) -> list[Vote]:
    """Standing votes on items whose arm was drawn, newest first, `MOST` at most; one statement."""
    values: dict[str, int | date | list[str] | None] = {
        "collection": collection.pk,
        "relevant": collection.relevant_from,
        "others": list(MEASURING),
        "since": since,
        "most": MOST,
    }
    with connection.cursor() as cursor:
        cursor.execute(DRAWN, values)
        return [Vote(*row) for row in cursor.fetchall()]


def studied_pairs(study: Study) -> list[JudgedPair]:
    """The pairs of a study with the votes that both groups have cast so far; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(STUDIED, {"study": study.pk, "relevant": study.collection.relevant_from})
        return judged_pairs(cursor.fetchall())
