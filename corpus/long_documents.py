"""Counts of documents that are longer than judges read, and how much of them judges are shown."""

from corpus.document_limit import SHARED, SHOWN
from corpus.models import Collection
from store.sql import fetch_row

# The size in bytes is known without reading the text, so only texts that may be too long are measured.
DOCUMENTS = """
SELECT count(*) FROM corpus_document d
WHERE d.collection_id = %(collection)s AND d.is_current
  AND octet_length(d.text) > %(shown)s AND length(d.text) > %(shown)s"""
# Candidate pairs, and the windows of their documents, as in corpus.document_limit.cut_windows.
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
    """Count the current documents of which judges see only a part."""
    return int(fetch_row(DOCUMENTS, collection=collection.pk, shown=SHOWN)[0])


def count_long_pairs(collection: Collection) -> int:
    """Count the candidate pairs with such a document."""
    return int(fetch_row(PAIRS, collection=collection.pk, shown=SHOWN, shared=SHARED)[0])


def count_windows(collection: Collection) -> int:
    """Count the windows of the documents of these candidate pairs."""
    return int(fetch_row(PAIRS, collection=collection.pk, shown=SHOWN, shared=SHARED)[1])
