"""Qrels resolution: one label for each pair and aspect, derived from judgments alone.

Adjudication comes before people, people before imported people, those before a policy. Reference
grades and imported judges measure and never settle, and a withdrawn judgment does not count. Nobody
writes a label by hand.
"""

from collections.abc import Iterable

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
    """Derive every label of the collection again; return how many changed."""
    return resolve_pairs(Pair.objects.filter(collection=collection).values_list("pk", flat=True))


@transaction.atomic
def resolve_pairs(pair_ids: Iterable[int]) -> int:
    """Derive the labels of these pairs again; return how many changed."""
    # Locked first, and in one order: the next statement then sees what a competing writer
    # committed, and two writers never wait for each other.
    if not (pairs := list(pair_ids)):
        return 0
    execute(LOCK_PAIRS, pairs=pairs)
    (changed,) = fetch_row(RESOLVE, pairs=pairs)
    return int(changed)


# The assessor under whose name the gold of this collection's own experts stands.
EXPERTS = "experts"

REFERENCE_GRADES = """
SELECT pair_id, grade FROM reference_grades(%(collection)s)
WHERE %(pairs)s::bigint[] IS NULL OR pair_id = ANY(%(pairs)s)
"""


def reference_grades(collection: Collection, pairs: Iterable[int] | None = None) -> dict[int, int]:
    """Return reference grades of pairs: of the collection, or of given ones."""
    return dict(fetch_rows(REFERENCE_GRADES, collection=collection.pk, pairs=None if pairs is None else list(pairs)))


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
