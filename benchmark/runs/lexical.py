"""Runs by BM25 over the collection's documents."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Progress, ShouldStop, rank_each_query
from benchmark.runs.rankings import RankedQuery
from corpus.models import Collection, Document, Query
from corpus.search import bm25
from jobs.leases import LeaseLost


def check(collection: Collection, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Complete `k1` and `b`; the defaults are those of the candidate search."""
    return {"k1": float(recipe.get("k1", bm25.K1)), "b": float(recipe.get("b", bm25.B))}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Search for the words of each query. A missing index is built first, with its own progress."""
    index = index_of(run, run.recipe, progress, should_stop)
    excluded = rankings.excluded_documents(run.collection)

    def rank(query: Query) -> RankedQuery:
        return rank_by_bm25(index, query.text, run.depth + len(excluded.get(query.pk, ())))

    rank_each_query(run, rank, progress, should_stop, _("searching"))


def rank_by_bm25(index: bm25.Index, text: str, depth: int) -> RankedQuery:
    """Rank the documents for the words of a text, and measure the time."""
    started_at = perf_counter()
    hits = index.search(text, depth)
    seconds = perf_counter() - started_at
    return RankedQuery([key for key, _score in hits], [score for _key, score in hits], seconds)


def index_of(run: Run, recipe: Mapping[str, Any], progress: Progress, should_stop: ShouldStop) -> bm25.Index:
    """Return the index with the parameters of a recipe. Raises LeaseLost when the run was stopped."""
    total = Document.objects.filter(collection=run.collection, is_current=True).count()

    def tell(documents: int) -> None:
        # LeaseLost interrupts the build, which may take minutes.
        progress(documents, total, _("indexing documents"))
        if should_stop():
            raise LeaseLost(f"run {run.name} stopped while its index was built")

    k1, b = recipe.get("k1", bm25.K1), recipe.get("b", bm25.B)
    return bm25.index_for(run.collection, k1=k1, b=b, tell=tell)
