"""The terms of documents, for text search; a worker writes them after an import, so that imports stay fast."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from corpus.models import Collection, Document


class DocumentTerms(models.Model):
    """The terms of a document's title and text (search.full_text), which can be rebuilt."""

    document = models.OneToOneField(
        Document, models.CASCADE, primary_key=True, db_constraint=False, related_name="search_terms"
    )
    collection = models.ForeignKey(
        Collection, models.CASCADE, db_constraint=False, db_index=False, related_name="search_terms"
    )
    terms = SearchVectorField()

    class Meta:
        verbose_name_plural = "document terms"
        indexes = [GinIndex(fields=["terms"], name="document_terms")]

    def __str__(self) -> str:
        return f"terms of {self.document_id}"
