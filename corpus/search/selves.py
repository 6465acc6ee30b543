"""Queries that are also documents, as in ArguAna and Quora: a document is no answer to itself."""

from collections.abc import Iterable

from django.db import connection

from corpus.models import Collection

# The document may have a title before the query's text, or lack its last line.
_SHARE = 0.8


def find_selves(collection: Collection, queries: Iterable[int] | None = None) -> dict[int, tuple[int, str]]:
    """Return the document (key, id) that is the query itself, by the key of the query.

    It has the id and the text of the query; an equal id alone may only mean that both are numbered from 1.
    """
    query_keys = None if queries is None else list(queries)
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT q.id, d.id, d.external_id, q.text, d.title, d.text FROM corpus_query q
               JOIN corpus_document d ON d.collection_id = q.collection_id AND d.is_current
                                     AND d.external_id = q.external_id
               WHERE q.collection_id = %(c)s AND q.is_current AND (%(q)s::bigint[] IS NULL OR q.id = ANY(%(q)s))""",
            {"c": collection.pk, "q": query_keys},
        )
        return {
            query: (document, name)
            for query, document, name, query_text, title, text in cursor
            if is_same_text(query_text, title, text)
        }


def is_same_text(query: str, title: str, text: str) -> bool:
    """Return whether a document has the text of the query, apart from title, case and spacing."""
    query_words, document_words = _simplify(query), _simplify(f"{title} {text}")
    if not query_words or not document_words:
        return False
    shorter, longer = sorted((query_words, document_words), key=len)
    if len(shorter) >= _SHARE * len(longer) and shorter in longer:
        return True
    return query_words == _simplify(text)


def _simplify(text: str) -> str:
    return " ".join(text.lower().split())
