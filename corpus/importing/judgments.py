"""Judgments from staged grades: each is appended once, and a changed grade supersedes the earlier one."""

from corpus.labels import resolve_pairs
from corpus.models import Assessor, Collection
from store.sql import execute, fetch_row, fetch_rows, read_sql

GRADE = """line int, query_id bigint, document_id bigint, grade smallint, assessor_id bigint, file int DEFAULT 0,
    step text DEFAULT 'import', said_at text DEFAULT ''"""
# Pairs for grades without one; they are no candidates, since they only measure and are not to be judged.
ADD_PAIRS = """
INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
SELECT DISTINCT %(c)s::bigint, query_id, document_id, false, 0 FROM import_grade s
WHERE NOT EXISTS (
    SELECT 1 FROM corpus_pair p WHERE p.query_id = s.query_id AND p.document_id = s.document_id)
"""
STORE = read_sql(__file__, "store_grades")
FIRST_CHANGE = read_sql(__file__, "find_changed_grade")


def ensure_assessor(collection: Collection, kind: Assessor.Kind, name: str) -> Assessor:
    """Return the assessor of this kind and name, created if missing."""
    return Assessor.objects.get_or_create(collection=collection, kind=kind, name=name)[0]


def add_pairs(collection: Collection) -> None:
    """Create the pairs of staged grades that are missing."""
    execute("ANALYZE import_grade")
    execute(ADD_PAIRS, c=collection.pk)


def store_judgments() -> tuple[int, int]:
    """Append the new and changed grades of `import_grade`; return the numbers of new and of changed judgments."""
    new, replaced = fetch_row(STORE)
    return new, replaced


def resolve_staged(collection: Collection) -> int:
    """Derive the labels of the pairs with staged grades again; return the number of changed labels."""
    pairs = fetch_rows(
        """SELECT id FROM corpus_pair p WHERE collection_id = %(c)s AND EXISTS (
             SELECT FROM import_grade s WHERE p.query_id = s.query_id AND p.document_id = s.document_id)""",
        c=collection.pk,
    )
    return resolve_pairs(pair for (pair,) in pairs)
