"""Runs by BM25 over the collection's documents."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell, each_query
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from corpus.search import bm25
from jobs.leases import LeaseLost


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`k1` from 0 to 10 and `b` from 0 to 1, those of the candidates unless named. Raises BadInput."""
    if unknown := recipe.keys() - {"k1", "b"}:
        raise BadInput(_("BM25 accepts k1 and b, not %(names)s") % {"names": ", ".join(sorted(unknown))})
    return bm25_parameters(recipe)


def bm25_parameters(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Read `k1` and `b` of a recipe. Raises BadInput."""
    try:
        k1, b = float(recipe.get("k1", bm25.K1)), float(recipe.get("b", bm25.B))
    except (TypeError, ValueError):
        k1 = b = -1.0
    if not (0 <= k1 <= 10 and 0 <= b <= 1):
        raise BadInput(_("k1 of BM25 must be a number from 0 to 10, and b a number from 0 to 1"))
    return {"k1": k1, "b": b}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Search for each query's own words. An index that is not there yet is built first, with its own progress."""
    index = index_of(run, progress, stopped)
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


def index_of(run: Run, progress: Tell, stopped: Stopped, recipe: Mapping[str, Any] | None = None) -> bm25.Index:
    """The index with the parameters of the run's recipe, or of a part of it. Raises LeaseLost for a stopped run."""
    total = Document.objects.filter(collection=run.collection, is_current=True).count()

    def tell(documents: int) -> None:
        # LeaseLost stops the build in its middle, which may take minutes.
        progress(documents, total, _("indexing documents"))
        if stopped():
            raise LeaseLost(f"run {run.name} stopped while its index was built")

    given = run.recipe if recipe is None else recipe
    k1, b = given.get("k1", bm25.K1), given.get("b", bm25.B)
    return bm25.index_for(run.collection, k1=k1, b=b, tell=tell)
