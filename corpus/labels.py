"""Qrels resolution: one label per pair and aspect, derived from judgments alone (MECHANICS M2).

Adjudication before people before imported people before policy. Reference grades and imported judges measure and
never settle. A withdrawn judgment does not count. Nobody writes a label by hand: `rebuild_labels` makes them all
again at any time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from corpus.collections.task_order import MEASURING
from corpus.models import Assessor, Collection, Judgment

PEOPLE = "people"
ADJUDICATOR = "adjudicator"
Kind = Assessor.Kind
Step = Judgment.Step


@dataclass(frozen=True, slots=True)
class Grade:
    """A judgment as the resolution sees it. All those given to `resolve` are of one pair and aspect."""

    id: int
    kind: str
    name: str  # Of the assessor.
    step: str
    grade: int | None  # None withdraws what it supersedes.
    item: int | None = None
    # The item is settled; or the grade is of an aspect and was given in its workshop, which has no items.
    settled: bool = False
    supersedes: int | None = None
    # The item's reason is one of MEASURING: what was said there is no label.
    measures: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """A label: the grade and who it comes from (adjudicator, people, or the policy's name)."""

    grade: int
    origin: str


def resolve_label(grades: Iterable[Grade]) -> Resolved | None:
    """The label of one pair and aspect; None where nothing settles it."""
    grades = list(grades)
    replaced = {grade.supersedes for grade in grades}
    standing = [
        grade
        for grade in grades
        if grade.id not in replaced
        and grade.grade is not None
        and (not grade.measures or grade.step == Step.ADJUDICATION)
    ]
    return (
        _newest_label([g for g in standing if g.step == Step.ADJUDICATION], ADJUDICATOR)
        or _people_majority([g for g in standing if g.kind == Kind.PERSON])
        or _imported_majority(standing)
        or _newest_label([g for g in standing if g.kind == Kind.POLICY])
    )


def _newest_label(grades: list[Grade], origin: str | None = None) -> Resolved | None:
    """The last word of the rows given."""
    last = max(grades, key=lambda grade: grade.id, default=None)
    if last is None or last.grade is None:
        return None
    return Resolved(last.grade, origin or last.name)


def _people_majority(grades: list[Grade]) -> Resolved | None:
    """The majority of the newest settled item that has one."""
    finals = [g for g in grades if g.step == Step.FINAL and g.settled]
    for item in sorted({g.item or 0 for g in finals}, reverse=True):
        grade = _majority_grade([g.grade for g in finals if (g.item or 0) == item])
        if grade is not None:
            return Resolved(grade, PEOPLE)
    return None


def _imported_majority(standing: list[Grade]) -> Resolved | None:
    """The majority of imported people, where no person of the collection judged the pair."""
    if any(g.kind == Kind.PERSON for g in standing):
        return None
    grade = _majority_grade([g.grade for g in standing if g.kind == Kind.HUMAN_IMPORT])
    return None if grade is None else Resolved(grade, PEOPLE)


def _majority_grade(grades: Sequence[int | None]) -> int | None:
    """The grade that more gave than any other; None for a tie or for nobody."""
    ranked = Counter(grades).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def write_labels(rows: str, *, unless: Sequence[str] = ()) -> str:
    """The statement that writes a label for each row of a SELECT of (pair, aspect, grade, origin).

    A label that says the same already is left alone, and so is one whose origin is among `unless`.
    """
    kept = "".join(f" AND l.origin <> '{origin}'" for origin in unless)
    return f"""INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin) {rows}
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin){kept}"""


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


_WRITTEN = write_labels("SELECT pair_id, aspect_id, grade, origin FROM resolved")


def rebuild_labels(collection: Collection) -> int:
    """Derive every label of the collection again; the number of labels that changed."""
    return resolve_where("collection_id = %s", [collection.pk])


def resolve_pairs(pair_ids: Iterable[int]) -> int:
    """Derive the labels of these pairs again; the number of labels that changed."""
    ids = list(pair_ids)
    return resolve_where("id = ANY(%s)", [ids]) if ids else 0


def resolve_where(condition: str, parameters: list[int | list[int]]) -> int:
    """Derive the labels of the pairs that an SQL condition on `corpus_pair` picks; the number that changed.

    The pairs are locked first, in one order: the statement after sees what a competing writer committed.
    """
    measuring = ", ".join(f"'{reason}'" for reason in MEASURING)
    wanted = f"SELECT id FROM corpus_pair WHERE {condition}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({wanted} ORDER BY id FOR NO KEY UPDATE) locked", parameters)
        cursor.execute(_RESOLVE.format(wanted=wanted, measuring=measuring, written=_WRITTEN), parameters)
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


def reference_grades(collection: Collection, pairs: Iterable[int] | None = None) -> dict[int, int]:
    """Reference grades of the collection's pairs, or of those given."""
    statement, values = REFERENCE, dict[str, int | list[int]](collection=collection.pk)
    if pairs is not None:
        statement = f"SELECT pair_id, grade FROM ({REFERENCE}) g WHERE pair_id = ANY(%(pairs)s)"
        values |= {"pairs": list(pairs)}
    with connection.cursor() as cursor:
        cursor.execute(statement, dict(values))
        return dict(cursor.fetchall())
