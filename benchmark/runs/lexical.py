"""Runs by BM25 over the collection's documents."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell, each_query
from benchmark.runs.rankings import RankedQuery
from corpus.models import Collection, Document, Query
from corpus.search import bm25
from jobs.leases import LeaseLost


def check(collection: Collection, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """`k1` and `b`, those of the candidates unless named."""
    return {"k1": float(recipe.get("k1", bm25.K1)), "b": float(recipe.get("b", bm25.B))}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Search for each query's own words. An index that is not there yet is built first, with its own progress."""
    index = index_of(run, run.recipe, progress, stopped)
    left_out = rankings.excluded_documents(run.collection)

    def rank(query: Query) -> RankedQuery:
        return rank_by_bm25(index, query.text, run.depth + len(left_out.get(query.pk, ())))

    each_query(run, rank, progress, stopped, _("searching"))


def rank_by_bm25(index: bm25.Index, text: str, depth: int) -> RankedQuery:
    """Rank the documents for the words of a text, and take the time."""
    begin = perf_counter()
    found = index.search(text, depth)
    seconds = perf_counter() - begin
    return RankedQuery([key for key, _score in found], [score for _key, score in found], seconds)


def index_of(run: Run, recipe: Mapping[str, Any], progress: Tell, stopped: Stopped) -> bm25.Index:
    """Return the index with the parameters of a recipe. Raises LeaseLost for a stopped run."""
    total = Document.objects.filter(collection=run.collection, is_current=True).count()

    def tell(documents: int) -> None:
        # LeaseLost stops the build in its middle, which may take minutes.
        progress(documents, total, _("indexing documents"))
        if stopped():
            raise LeaseLost(f"run {run.name} stopped while its index was built")

    k1, b = recipe.get("k1", bm25.K1), recipe.get("b", bm25.B)
    return bm25.index_for(run.collection, k1=k1, b=b, tell=tell)
