"""Search of documents by the terms of their titles and texts.

Terms are those that retrieval counts (corpus.search.text): case-folded, CJK as bigrams. They stand
in a table of their own with a GIN index, which a worker fills after an import: an index over the
documents themselves would slow imports.
"""

from collections.abc import Callable, Iterable
from functools import partial

from django.db import connection, transaction
from django.db.models import BooleanField, Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left

from corpus.models import Document
from corpus.models.search import DocumentTerms
from corpus.search.text import tokenize_text
from jobs import background

INDEX = "corpus.index_documents"
MOST_CHARACTERS = 100_000  # Of a text; what follows is not searched.
LONGEST_TERM = 200
PREFIX_FROM = 3  # A term of so many letters also finds longer ones that begin with it.
BATCH = 2_000

STORE = """
INSERT INTO corpus_documentterms (document_id, collection_id, terms)
SELECT id, %s, terms::tsvector FROM unnest(%s::bigint[], %s::text[]) AS t(id, terms)
ON CONFLICT DO NOTHING"""


def request_index(collection: int) -> None:
    """Let a worker index documents without terms, in the adding transaction."""
    background.enqueue(INDEX, collection)
    # Once more when they are in sight: a job that was joined may have ended without seeing them.
    transaction.on_commit(partial(background.enqueue, INDEX, collection))


def index_documents(collection: int, tell: Callable[[int, int], object], stopped: Callable[[], bool]) -> None:
    """Store terms of documents without any; what was stored before stays."""
    known = DocumentTerms.objects.filter(document=OuterRef("pk"))
    missing = list(Document.objects.filter(~Exists(known), collection=collection).values_list("pk", flat=True))
    if not missing:
        return
    for begin in range(0, len(missing), BATCH):
        if stopped():
            return
        rows = Document.objects.filter(pk__in=missing[begin : begin + BATCH])
        found = list(rows.values_list("pk", "title", Left("text", MOST_CHARACTERS)))
        vectors = [write_vector(f"{title} {text}") for _, title, text in found]
        # Another worker may have stored the same documents: its rows are as good as these.
        with connection.cursor() as cursor:
            cursor.execute(STORE, [collection, [pk for pk, _, _ in found], vectors])
        tell(min(begin + BATCH, len(missing)), len(missing))
    index_documents(collection, tell, stopped)  # what was imported meanwhile


def write_vector(text: str) -> str:
    """Return the terms of a text as PostgreSQL reads a tsvector. Terms are letters, digits and marks: none is quoted.

    >>> write_vector("A mapping maps")
    "'a' 'mapping' 'maps'"
    """
    return " ".join(f"'{term}'" for term in sorted(set(_short_terms(text))))


def write_search(text: str) -> str:
    """Return a tsquery for documents that have every term of a text; "" where it has no term.

    >>> write_search("A mapping")
    "'a' & 'mapping':*"
    """
    terms = dict.fromkeys(_short_terms(text))
    return " & ".join(f"'{term}':*" if len(term) >= PREFIX_FROM else f"'{term}'" for term in terms)


def find_documents(collection: int, search: str) -> QuerySet[DocumentTerms]:
    """Return the terms of a collection's documents that match what `write_search` returned."""
    # By the cast, and not by to_tsquery: its parser would split terms that ours keeps.
    matches = RawSQL("terms @@ %s::tsquery", [search], output_field=BooleanField())
    return DocumentTerms.objects.filter(matches, collection=collection)


def _short_terms(text: str) -> Iterable[str]:
    return (term for term in tokenize_text(text) if len(term) <= LONGEST_TERM)
