"""Qrels resolution: one label for each pair and aspect, derived from judgments alone.

Adjudication comes before people, people before imported people, those before a policy. Reference grades and imported
judges measure and never settle, and a withdrawn judgment does not count. Nobody writes a label by hand.
"""

from collections.abc import Iterable, Sequence

from django.db import connection, transaction
from django.utils.translation import gettext as _

from corpus.collections.task_order import MEASURING
from corpus.models import Collection

PEOPLE = "people"
ADJUDICATOR = "adjudicator"


def write_labels(rows: str, *, unless: Sequence[str] = ()) -> str:
    """Return the statement that writes a label for each row of a SELECT of (pair, aspect, grade, origin).

    A label that says the same already is left alone, and so is one whose origin is among `unless`.
    """
    kept = "".join(f" AND l.origin <> '{origin}'" for origin in unless)
    return f"""INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin) {rows}
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin){kept}"""


# The same rule stands once more in tests/corpus/test_labels.py, in plain Python, and is held against this statement.
_RESOLVE = """
WITH wanted AS MATERIALIZED ({wanted}),
standing AS MATERIALIZED (
    SELECT j.id, j.pair_id, j.aspect_id, j.grade, j.step, j.item_id, a.kind, a.name,
           COALESCE(i.state = 'settled', j.aspect_id IS NOT NULL) AS settled,
           bool_or(a.kind = 'person') OVER (PARTITION BY j.pair_id, j.aspect_id) AS judged_here
    FROM wanted
    JOIN current_judgment j ON j.pair_id = wanted.id
    JOIN corpus_assessor a ON a.id = j.assessor_id
    LEFT JOIN corpus_item i ON i.id = j.item_id
    WHERE (a.kind IN ('person', 'policy', 'human-import') AND COALESCE(i.reason, '') NOT IN ({measuring})
           OR j.step = 'adjudication')
),
counted AS (
    SELECT pair_id, aspect_id, kind, CASE kind WHEN 'person' THEN COALESCE(item_id, 0) ELSE 0 END AS item, grade,
           count(*) AS n
    FROM standing
    WHERE (kind = 'person' AND step = 'final' AND settled)
       OR (kind = 'human-import' AND NOT judged_here)
    GROUP BY 1, 2, 3, 4, 5
),
ranked AS (
    SELECT *, rank() OVER won AS place, count(*) OVER (PARTITION BY pair_id, aspect_id, kind, item, n) AS equals
    FROM counted WINDOW won AS (PARTITION BY pair_id, aspect_id, kind, item ORDER BY n DESC)
),
candidate AS (
    SELECT pair_id, aspect_id, grade, 'adjudicator' AS origin, 1 AS rank, id AS newest
    FROM standing WHERE step = 'adjudication'
    UNION ALL
    SELECT pair_id, aspect_id, grade, 'people', CASE kind WHEN 'person' THEN 2 ELSE 3 END, item
    FROM ranked WHERE place = 1 AND equals = 1
    UNION ALL
    SELECT pair_id, aspect_id, grade, name, 4, id FROM standing WHERE kind = 'policy' AND step <> 'adjudication'
),
resolved AS MATERIALIZED (
    SELECT DISTINCT ON (pair_id, aspect_id) pair_id, aspect_id, grade, origin
    FROM candidate ORDER BY pair_id, aspect_id, rank, newest DESC
),
gone AS (
    DELETE FROM corpus_label l USING wanted
    WHERE l.pair_id = wanted.id AND NOT EXISTS (
        SELECT 1 FROM resolved r WHERE r.pair_id = l.pair_id AND r.aspect_id IS NOT DISTINCT FROM l.aspect_id)
    RETURNING 1
),
written AS (
    {written} RETURNING 1
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM written)
"""


def rebuild_labels(collection: Collection) -> int:
    """Derive every label of the collection again; return how many changed."""
    return resolve_where("collection_id = %s", [collection.pk])


def resolve_pairs(pair_ids: Iterable[int]) -> int:
    """Derive the labels of these pairs again; return how many changed."""
    ids = list(pair_ids)
    return resolve_where("id = ANY(%s)", [ids]) if ids else 0


def resolve_where(condition: str, parameters: list[int | list[int]]) -> int:
    """Derive the labels of the pairs that an SQL condition on `corpus_pair` picks; return how many changed."""
    measuring = ", ".join(f"'{reason}'" for reason in MEASURING)
    written = write_labels("SELECT pair_id, aspect_id, grade, origin FROM resolved")
    wanted = f"SELECT id FROM corpus_pair WHERE {condition}"
    with transaction.atomic(), connection.cursor() as cursor:
        # Locked first, and in one order: the next statement then sees what a competing writer committed, and two
        # writers never wait for each other.
        cursor.execute(f"SELECT count(*) FROM ({wanted} ORDER BY id FOR NO KEY UPDATE) locked", parameters)
        cursor.execute(_RESOLVE.format(wanted=wanted, measuring=measuring, written=written), parameters)
        (changed,) = cursor.fetchone()
    return int(changed)


# The assessor under whose name the gold of this collection's own experts stands.
EXPERTS = "experts"

# One grade for each pair: what experts said before what was imported, and of that the newest.
REFERENCE = f"""
SELECT DISTINCT ON (j.pair_id) j.pair_id, j.grade FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
WHERE a.collection_id = %(collection)s AND a.kind = 'reference' AND j.aspect_id IS NULL
ORDER BY j.pair_id, a.name <> '{EXPERTS}', j.id DESC
"""


def join_reference(pair: str) -> str:
    """Return the join that adds `gold.grade`, what REFERENCE finds, to rows with this column of a pair."""
    return f"""LEFT JOIN LATERAL (
    SELECT r.grade FROM current_judgment r JOIN corpus_assessor s ON s.id = r.assessor_id AND s.kind = 'reference'
    WHERE r.pair_id = {pair} AND r.aspect_id IS NULL
    ORDER BY s.name <> '{EXPERTS}', r.id DESC LIMIT 1) gold ON true"""


def reference_grades(collection: Collection, pairs: Iterable[int] | None = None) -> dict[int, int]:
    """Return the reference grade of each pair that has one: of the collection, or of the pairs given."""
    only = "" if pairs is None else "WHERE pair_id = ANY(%(pairs)s)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT pair_id, grade FROM ({REFERENCE}) g {only}",
            {"collection": collection.pk, "pairs": [] if pairs is None else list(pairs)},
        )
        return dict(cursor.fetchall())


def name_grade(value: int, highest: int) -> str:
    """Return a grade as number and words; the number alone where the scale has no words for it."""
    return f"{value} {grade_label(value, highest).lower()}".strip()


def grade_label(value: int, highest: int) -> str:
    """Return what a grade of a scale from 0 to `highest` is called; nothing for most grades of unusual scales."""
    if not 0 <= value <= highest:
        return ""
    if highest == 1:
        return (_("Not relevant"), _("Relevant"))[value]
    if highest == 3:
        return (_("Not relevant"), _("Slightly relevant"), _("Relevant"), _("Fully relevant"))[value]
    return {0: _("Not relevant"), highest: _("Fully relevant")}.get(value, "")
