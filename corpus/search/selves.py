"""Queries that are documents themselves, as in ArguAna and Quora: none is an answer to itself."""

from collections.abc import Iterable

from django.db import connection

from corpus.models import Collection

# A document's text may be the query's with a title before it, or without the last line.
_SHARE = 0.8


def find_selves(collection: Collection, queries: Iterable[int] | None = None) -> dict[int, tuple[int, str]]:
    """Return the document that is the query itself, by the query's key: its key and its id.

    It has the query's id and the query's text. An id alone says nothing, where both are numbered from 1 on.
    """
    some = None if queries is None else list(queries)
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT q.id, d.id, d.external_id, q.text, d.title, d.text FROM corpus_query q
               JOIN corpus_document d ON d.collection_id = q.collection_id AND d.is_current
                                     AND d.external_id = q.external_id
               WHERE q.collection_id = %(c)s AND q.is_current AND (%(q)s::bigint[] IS NULL OR q.id = ANY(%(q)s))""",
            {"c": collection.pk, "q": some},
        )
        return {
            query: (document, name)
            for query, document, name, asked, title, text in cursor
            if is_same_text(asked, title, text)
        }


def is_same_text(query: str, title: str, text: str) -> bool:
    """Return whether a document says the query, title and spacing apart."""
    asked, whole = _simplify(query), _simplify(f"{title} {text}")
    if not asked or not whole:
        return False
    shorter, longer = sorted((asked, whole), key=len)
    if len(shorter) >= _SHARE * len(longer) and shorter in longer:
        return True
    return asked == _simplify(text)


def _simplify(text: str) -> str:
    return " ".join(text.lower().split())
