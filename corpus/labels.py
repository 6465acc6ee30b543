"""Resolution of labels: one label for each pair and aspect, derived from judgments alone.

Adjudication takes precedence over people, people over imported people, and these over policies.
Reference grades and imported judges only measure, and withdrawn judgments do not count. Labels are
never written by hand.
"""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.models import Collection, Pair
from store.sql import execute, fetch_row, fetch_rows, read_sql

PEOPLE = "people"
ADJUDICATOR = "adjudicator"

LOCK_PAIRS = """
SELECT count(*) FROM (SELECT FROM corpus_pair WHERE id = ANY(%(pairs)s) ORDER BY id FOR NO KEY UPDATE) locked
"""
RESOLVE = read_sql(__file__, "resolve_labels")


def rebuild_labels(collection: Collection) -> int:
    """Derive all labels of the collection again; return the number of changed labels."""
    return resolve_pairs(Pair.objects.filter(collection=collection).values_list("pk", flat=True))


@transaction.atomic
def resolve_pairs(pair_ids: Iterable[int]) -> int:
    """Derive the labels of these pairs again; return the number of changed labels."""
    # Locked first and in the same order, so that the next statement sees what a competing writer
    # committed, and two writers never deadlock.
    if not (pairs := list(pair_ids)):
        return 0
    lock_pairs(pairs)
    (count,) = fetch_row(RESOLVE, pairs=pairs)
    return int(count)


def lock_pairs(pair_ids: Iterable[int]) -> None:
    """Lock pairs until the transaction ends, in the order of their ids."""
    execute(LOCK_PAIRS, pairs=list(pair_ids))


# The assessor of the gold labels by this collection's own experts.
EXPERTS = "experts"

REFERENCE_GRADES = """
SELECT pair_id, grade FROM reference_grades(%(collection)s)
WHERE %(pairs)s::bigint[] IS NULL OR pair_id = ANY(%(pairs)s)
"""


def reference_grades(collection: Collection, pairs: Iterable[int] | None = None) -> dict[int, int]:
    """Return the reference grades of the collection's pairs, or of the given pairs."""
    return dict(fetch_rows(REFERENCE_GRADES, collection=collection.pk, pairs=None if pairs is None else list(pairs)))


def name_grade(value: int, highest: int, names: Sequence[str] = ()) -> str:
    """Return a grade as number and words, or as the number alone if the scale has no words for it."""
    label = grade_label(value, highest, names)
    # A collection's own names keep their capitals.
    return f"{value} {label if names else label.lower()}".strip()


def grade_label(value: int, highest: int, names: Sequence[str] = ()) -> str:
    """Return the name of a grade on a scale from 0 to `highest`; "" for most grades of unusual scales.

    `names`: the collection's own (Collection.grade_names), each with its help after a colon.
    """
    if not 0 <= value <= highest:
        return ""
    if value < len(names):
        return names[value].partition(":")[0].strip()
    if highest == 1:
        return (_("Not relevant"), _("Relevant"))[value]
    if highest == 3:
        return (_("Not relevant"), _("Slightly relevant"), _("Relevant"), _("Fully relevant"))[value]
    return {0: _("Not relevant"), highest: _("Fully relevant")}.get(value, "")
