"""Documents longer than judges read, and what a collection wants done."""

from corpus.document_limit import SHARED, SHOWN, WHOLE
from corpus.models import Collection
from store.sql import fetch_row

# The size in bytes is known without reading the text: only what may be too long is counted.
DOCUMENTS = """
SELECT count(*) FROM corpus_document d
WHERE d.collection_id = %(collection)s AND d.is_current
  AND octet_length(d.text) > %(shown)s AND length(d.text) > %(shown)s"""
# Candidates, and their documents' windows as corpus.document_limit.cut_windows cuts them.
PAIRS = """
SELECT count(*), coalesce(sum(ceil((length(d.text) - %(shared)s) / (%(shown)s - %(shared)s)::numeric)), 0)
FROM corpus_document d JOIN corpus_pair p ON p.document_id = d.id AND p.is_candidate
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
WHERE d.collection_id = %(collection)s AND d.is_current
  AND octet_length(d.text) > %(shown)s AND length(d.text) > %(shown)s"""
LABELS = """
SELECT count(*) FROM corpus_document d JOIN corpus_pair p ON p.document_id = d.id
JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
WHERE d.collection_id = %(collection)s AND d.is_current
  AND octet_length(d.text) > %(shown)s AND length(d.text) > %(shown)s"""


def count_long_documents(collection: Collection) -> int:
    """Count the current documents of which judges see a part only."""
    return int(fetch_row(DOCUMENTS, collection=collection.pk, shown=SHOWN)[0])


def count_long_pairs(collection: Collection) -> int:
    """Count the candidates with such a document."""
    return int(fetch_row(PAIRS, collection=collection.pk, shown=SHOWN, shared=SHARED)[0])


def count_windows(collection: Collection) -> int:
    """Count the windows of these candidates' documents."""
    return int(fetch_row(PAIRS, collection=collection.pk, shown=SHOWN, shared=SHARED)[1])


def count_long_labels(collection: Collection) -> int:
    """Count the labels of such documents."""
    return int(fetch_row(LABELS, collection=collection.pk, shown=SHOWN)[0])


def shown_characters(collection: Collection) -> int:
    """Return how many characters of a document a judge of the collection is shown at most."""
    return WHOLE if collection.long_documents == Collection.LongDocuments.CONTEXT else SHOWN
