"""Staged grades become judgments: append-only, once each, a changed one supersedes."""

from corpus.importing.staging import execute_sql, fetch_all, fetch_one
from corpus.labels import resolve_pairs
from corpus.models import Assessor, Collection

# What the staged assessors say now: of no task, and not superseded. Read once: as a condition of a join it would be
# asked for every row. An adjudication that was imported stands beside what its assessor had said before.
_STANDING = """standing AS MATERIALIZED (
    SELECT j.id, j.pair_id, j.assessor_id, j.grade, j.step = 'adjudication' AS adjudicates FROM judgment_head j
    WHERE j.assessor_id IN (SELECT assessor_id FROM import_grade) AND j.aspect_id IS NULL AND j.item_id IS NULL)"""
_SAME = "j.assessor_id = s.assessor_id AND j.adjudicates = (s.step = 'adjudication')"
PAIR = "p.query_id = s.query_id AND p.document_id = s.document_id"
GRADE = """line int, query_id bigint, document_id bigint, grade smallint, assessor_id bigint, file int DEFAULT 0,
    step text DEFAULT 'import', said_at text DEFAULT ''"""


def ensure_assessor(collection: Collection, kind: Assessor.Kind, name: str) -> Assessor:
    """Return the assessor of that kind and name, made when missing."""
    return Assessor.objects.get_or_create(collection=collection, kind=kind, name=name)[0]


def add_pairs(collection: Collection) -> None:
    """Make pairs of graded ids that have none: no candidates, to be measured by and not to be judged."""
    execute_sql("ANALYZE import_grade")
    execute_sql(
        f"""INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
            SELECT DISTINCT %(c)s::bigint, query_id, document_id, false, 0 FROM import_grade s
            WHERE NOT EXISTS (SELECT 1 FROM corpus_pair p WHERE {PAIR})""",
        {"c": collection.pk},
    )


def first_change(assessor_id: int) -> tuple[int, int, int, int] | None:
    """Return (file, line, grade, grade before) of the first line that contradicts what the assessor said before."""
    return fetch_one(
        f"""WITH {_STANDING} SELECT s.file, s.line, s.grade, j.grade FROM import_grade s
            JOIN corpus_pair p ON {PAIR} JOIN standing j ON j.pair_id = p.id AND {_SAME}
            WHERE s.assessor_id = %(a)s AND j.grade IS DISTINCT FROM s.grade ORDER BY s.file, s.line LIMIT 1""",
        {"a": assessor_id},
    )


def store_judgments() -> tuple[int, int]:
    """Append what `import_grade` holds and nobody said before. Its pairs must exist (`add_pairs`).

    Return how many are for pairs that had none of the assessor, and how many stand in place of an earlier grade.
    """
    counts = fetch_one(
        f"""WITH {_STANDING}, written AS (
              INSERT INTO corpus_judgment
                (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
              SELECT p.id, s.assessor_id, s.step, s.grade, j.id, '', 0, ''
              FROM import_grade s JOIN corpus_pair p ON {PAIR}
              LEFT JOIN standing j ON j.pair_id = p.id AND {_SAME}
              WHERE j.id IS NULL OR j.grade IS DISTINCT FROM s.grade
              ORDER BY s.file, s.said_at, s.line
              RETURNING supersedes_id)
            SELECT count(*) FILTER (WHERE supersedes_id IS NULL), count(supersedes_id) FROM written"""
    )
    return (counts[0], counts[1]) if counts else (0, 0)


def resolve_staged(collection: Collection) -> int:
    """Derive the labels of the pairs of the staged grades again; return how many changed."""
    graded = fetch_all(
        """SELECT id FROM corpus_pair p WHERE collection_id = %(c)s AND EXISTS (
             SELECT FROM import_grade s WHERE p.query_id = s.query_id AND p.document_id = s.document_id)""",
        {"c": collection.pk},
    )
    return resolve_pairs(pair for (pair,) in graded)
