"""What is known to be right: reference grades, by pair. They measure and never settle."""

from collections.abc import Iterable

from django.db import connection

from corpus.models import Collection

EXPERTS = "experts"
"""The assessor under whose name the gold of this collection's own experts stands."""

REFERENCE = f"""
SELECT DISTINCT ON (j.pair_id) j.pair_id, j.grade FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
WHERE a.collection_id = %(collection)s AND a.kind = 'reference' AND j.aspect_id IS NULL
ORDER BY j.pair_id, a.name <> '{EXPERTS}', j.id DESC
"""
"""One grade for each pair: what experts said before what was imported, and of that the newest."""


def grades(collection: Collection, pairs: Iterable[int] | None = None) -> dict[int, int]:
    """Reference grades of the collection's pairs, or of those given."""
    statement, values = REFERENCE, dict[str, int | list[int]](collection=collection.pk)
    if pairs is not None:
        statement = f"SELECT pair_id, grade FROM ({REFERENCE}) g WHERE pair_id = ANY(%(pairs)s)"
        values |= {"pairs": list(pairs)}
    with connection.cursor() as cursor:
        cursor.execute(statement, dict(values))
        return dict(cursor.fetchall())
