"""Models of web searches for a collection's queries: the job, its queries and their results."""

from django.db import models

from corpus.models import NUMBER, Document, Numbered, Query
from judges.models.model_jobs import ModelJob


class WebSearch(Numbered, ModelJob):
    """A web search for some of a collection's queries, whose pages become documents to be judged (Prism 4.1)."""

    options = models.JSONField(default=dict, help_text="judge, limit, seed, fetch, budget, max_calls.")
    key = models.CharField(max_length=64, help_text="sha256 of the judge, the queries and `fetch`, in hex.")
    imported = models.JSONField(default=dict, help_text="Documents and pairs that it added to the collection.")

    class Meta:
        verbose_name_plural = "web searches"
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="web_search_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="web_search_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} web search {self.number}"


class SearchedQuery(models.Model):
    """A query of a web search."""

    search = models.ForeignKey(WebSearch, models.CASCADE, related_name="queries", db_index=False)
    place = models.PositiveIntegerField(help_text="Order among the queries, from 0.")
    query = models.ForeignKey(Query, models.CASCADE, related_name="+")
    answered_at = models.DateTimeField(null=True, help_text="When the service answered; null: pages not read yet.")
    cached = models.BooleanField(default=False, help_text="The answer is an earlier search's.")

    class Meta:
        verbose_name_plural = "searched queries"
        constraints = [models.UniqueConstraint(fields=["search", "place"], name="searched_query_once")]

    def __str__(self) -> str:
        return f"{self.search_id}/{self.place}"


class WebSearchResult(models.Model):
    """A page that was found for a query: its document, or the problem because of which it has none."""

    searched = models.ForeignKey(SearchedQuery, models.CASCADE, related_name="results", db_index=False)
    rank = models.PositiveSmallIntegerField(help_text="From 1.")
    url = models.TextField(help_text="As the service returned it, or a fetched page's address after redirects.")
    title = models.TextField(blank=True)
    document = models.ForeignKey(Document, models.CASCADE, null=True, related_name="+")
    problem = models.TextField(blank=True, help_text="Why it became no document (corpus.url_fetch.problems).")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["searched", "rank"], name="web_search_result_once")]

    def __str__(self) -> str:
        return f"{self.searched_id}/{self.rank}"
