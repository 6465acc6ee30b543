"""Search of documents by the terms of their titles and texts.

Terms are the same as in retrieval (corpus.search.text): case-folded, CJK as bigrams. They are stored
in a separate table with a GIN index, which a worker fills after an import: an index on the documents
themselves would slow down imports.
"""

from collections.abc import Callable, Iterable
from functools import partial

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Left

from corpus.models import Document
from corpus.models.search import DocumentTerms
from corpus.search.text import tokenize_text
from jobs import background

INDEX = "corpus.index_documents"
MOST_CHARACTERS = 100_000  # The part of a text that is searched.
LONGEST_TERM = 200
PREFIX_FROM = 3  # A term of at least so many letters also finds longer ones that begin with it.
BATCH = 2_000

STORE = """
INSERT INTO corpus_documentterms (document_id, collection_id, terms)
SELECT id, %s, terms::tsvector FROM unnest(%s::bigint[], %s::text[]) AS t(id, terms)
ON CONFLICT DO NOTHING"""


def request_index(collection: int) -> None:
    """Let a worker index the documents without terms; call it in the transaction that adds them."""
    background.enqueue(INDEX, collection)
    # Again on commit: a job that was already queued may end before it can see the documents.
    transaction.on_commit(partial(background.enqueue, INDEX, collection))


def index_documents(collection: int, tell: Callable[[int, int], object], should_stop: Callable[[], bool]) -> None:
    """Store the terms of documents that have none yet."""
    stored = DocumentTerms.objects.filter(document=OuterRef("pk"))
    missing = list(Document.objects.filter(~Exists(stored), collection=collection).values_list("pk", flat=True))
    if not missing:
        return
    for begin in range(0, len(missing), BATCH):
        if should_stop():
            return
        rows = Document.objects.filter(pk__in=missing[begin : begin + BATCH])
        texts = list(rows.values_list("pk", "title", Left("text", MOST_CHARACTERS)))
        vectors = [write_vector(f"{title} {text}") for _, title, text in texts]
        # Another worker may have stored the same documents: conflicting rows are equal and skipped.
        with connection.cursor() as cursor:
            cursor.execute(STORE, [collection, [pk for pk, _, _ in texts], vectors])
        tell(min(begin + BATCH, len(missing)), len(missing))
    # Index what was imported meanwhile.
    index_documents(collection, tell, should_stop)


def write_vector(text: str) -> str:
    """Return the terms of a text as the text form of a tsvector. Terms have no characters that need escaping.

    >>> write_vector("A mapping maps")
    "'a' 'mapping' 'maps'"
    """
    return " ".join(f"'{term}'" for term in sorted(set(_short_terms(text))))


def write_search(text: str) -> str:
    """Return a tsquery for documents that have every term of a text; "" for a text without terms.

    >>> write_search("A mapping")
    "'a' & 'mapping':*"
    """
    terms = dict.fromkeys(_short_terms(text))
    return " & ".join(f"'{term}':*" if len(term) >= PREFIX_FROM else f"'{term}'" for term in terms)


def _short_terms(text: str) -> Iterable[str]:
    return (term for term in tokenize_text(text) if len(term) <= LONGEST_TERM)
