"""Documents that are longer than what judges read of one, and what a collection wants done with them."""

from django.db import connection

from corpus.document_limit import SHARED, SHOWN, WHOLE
from corpus.models import Collection

# The size in bytes is known without reading the text: only what may be too long is counted.
_LONG = f"octet_length(d.text) > {SHOWN} AND length(d.text) > {SHOWN}"
DOCUMENTS = f"SELECT count(*) FROM corpus_document d WHERE d.collection_id = %s AND d.is_current AND {_LONG}"
_OF_PAIRS = f"""
FROM corpus_document d JOIN corpus_pair p ON p.document_id = d.id AND p.is_candidate
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
WHERE d.collection_id = %s AND d.is_current AND {_LONG}
"""
PAIRS = f"SELECT count(*) {_OF_PAIRS}"
# As corpus.document_limit.cut_windows cuts them.
WINDOWS = f"SELECT COALESCE(sum(ceil((length(d.text) - {SHARED}) / {SHOWN - SHARED}.0)), 0) {_OF_PAIRS}"
LABELS = f"""
SELECT count(*) FROM corpus_document d JOIN corpus_pair p ON p.document_id = d.id
JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
WHERE d.collection_id = %s AND d.is_current AND {_LONG}
"""


def count_long_documents(collection: Collection) -> int:
    """Count the current documents of which judges see a part only."""
    return _count(DOCUMENTS, collection)


def count_long_pairs(collection: Collection) -> int:
    """Count the candidates with such a document."""
    return _count(PAIRS, collection)


def count_windows(collection: Collection) -> int:
    """Count the windows of these candidates' documents."""
    return _count(WINDOWS, collection)


def count_long_labels(collection: Collection) -> int:
    """Count the labels of such documents."""
    return _count(LABELS, collection)


def shown_characters(collection: Collection) -> int:
    """Return how many characters of a document a judge of the collection is shown at most."""
    return WHOLE if collection.long_documents == Collection.LongDocuments.CONTEXT else SHOWN


def _count(statement: str, collection: Collection) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, [collection.pk])
        (count,) = cursor.fetchone()
    return int(count)
