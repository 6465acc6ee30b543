"""Runs by BM25 over the collection's documents."""

from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark import rankings
from benchmark.making import Stopped, Tell
from benchmark.making.looping import each_query
from benchmark.models import Run
from benchmark.rankings import Ranked
from corpus import bm25
from corpus.errors import BadInput
from corpus.models import Collection, Query


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`k1` and `b` of BM25, those of the candidates unless named. Raises BadInput."""
    if unknown := recipe.keys() - {"k1", "b"}:
        raise BadInput(_("BM25 takes k1 and b, not %(names)s") % {"names": ", ".join(sorted(unknown))})
    return {}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Each query's own words."""
    left_out = rankings.excluded(run.collection)
    index = bm25.index_for(run.collection)

    def rank(query: Query) -> Ranked:
        begin = perf_counter()
        found = index.search(query.text, run.depth + len(left_out.get(query.pk, ())))
        seconds = perf_counter() - begin
        return Ranked([key for key, _score in found], [score for _key, score in found], seconds)

    each_query(run, rank, progress, stopped)
