"""From a pool to pairs of the collection, and back to what was said about them."""

from collections.abc import Iterator, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from corpus.importing.staging import copy_lines, create_temporary_table, execute_sql, ignore_progress, plan_for_bulk
from corpus.labels import ADJUDICATOR, PEOPLE
from corpus.models import Collection, Label

Integers = NDArray[np.int64]
FINAL = (PEOPLE, ADJUDICATOR)  # Origins of labels that no judge is asked about any more.


def pairs_of(collection: Collection, queries: Integers, documents: Integers) -> list[int]:
    """Ids of these pairs in their order, made where they are missing; all become candidates (ADR 0008).

    Pairs of texts that are not current any more are left out. Call it inside a transaction.
    """
    plan_for_bulk()
    create_temporary_table("filling_pool", "place int, query_id bigint, document_id bigint")
    copy_lines("filling_pool", _copy_lines(queries, documents), "pairs", ignore_progress)
    execute_sql("ANALYZE filling_pool")
    here = "p.query_id = s.query_id AND p.document_id = s.document_id"
    execute_sql(f"UPDATE corpus_pair p SET is_candidate = true FROM filling_pool s WHERE {here} AND NOT p.is_candidate")
    execute_sql(
        f"""INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
            SELECT %(c)s, s.query_id, s.document_id, true, 0 FROM filling_pool s
            JOIN corpus_query q ON q.id = s.query_id AND q.is_current AND q.collection_id = %(c)s
            JOIN corpus_document d ON d.id = s.document_id AND d.is_current AND d.collection_id = %(c)s
            WHERE NOT EXISTS (SELECT FROM corpus_pair p WHERE {here}) ORDER BY s.query_id, s.document_id""",
        {"c": collection.pk},
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT p.id FROM filling_pool s JOIN corpus_pair p ON {here}
                JOIN corpus_query q ON q.id = s.query_id AND q.is_current
                JOIN corpus_document d ON d.id = s.document_id AND d.is_current ORDER BY s.place"""
        )
        return [pair for (pair,) in cursor.fetchall()]


def _copy_lines(queries: Integers, documents: Integers) -> Iterator[str]:
    for place, (query, document) in enumerate(zip(queries.tolist(), documents.tolist(), strict=True)):
        yield f"{place}\t{query}\t{document}\n"


def known_to_people(collection: Collection, queries: Integers, documents: Integers) -> int:
    """How many of these pairs people or an adjudicator labelled already."""
    labels = Label.objects.filter(pair__collection=collection, aspect=None, origin__in=FINAL)
    known = set(labels.values_list("pair__query_id", "pair__document_id"))
    return sum(pair in known for pair in zip(queries.tolist(), documents.tolist(), strict=True)) if known else 0


def without_final(pairs: Sequence[int]) -> list[int]:
    """Those that neither people nor an adjudicator labelled, in their order."""
    labels = Label.objects.filter(pair__in=list(pairs), aspect=None, origin__in=FINAL)
    known = set(labels.values_list("pair_id", flat=True))
    return [pair for pair in pairs if pair not in known]
