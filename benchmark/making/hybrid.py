"""Runs out of other runs: BM25 with a reranker or a dense retriever, by the rules of benchmark.hybrids."""

import math
from time import perf_counter
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from benchmark import hybrids, making, rankings
from benchmark.making import Stopped, Tell
from benchmark.making.looping import each_query
from benchmark.models import Progress, Run
from benchmark.rankings import Ranked
from corpus.errors import BadInput
from corpus.models import Collection, Query

NOTHING = (np.empty(0, dtype=np.int64), np.empty(0))


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`method`, `runs` (names, BM25 first) and `weights`; the ids of the runs are added. Raises BadInput."""
    if unknown := recipe.keys() - {"method", "runs", "weights", "ids"}:
        others = ", ".join(sorted(unknown))
        raise BadInput(_("a hybrid takes method, runs and weights, not %(names)s") % {"names": others})
    method = recipe.get("method") or "minmax"
    if method not in hybrids.METHODS:
        values = {"method": method, "known": ", ".join(hybrids.METHODS)}
        raise BadInput(_("%(method)s is no way to combine runs: choose one of %(known)s") % values)
    names = list(recipe.get("runs") or [])
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise BadInput(_("a hybrid is made of two or more different runs: name them, BM25's first"))
    runs = [ready(collection, name) for name in names]
    weights = _weights(recipe.get("weights"), method, len(runs))
    return {"method": method, "runs": names, "ids": [run.pk for run in runs], "weights": weights}


def ready(collection: Collection, name: str) -> Run:
    """The collection's run of this name, once it is made. Raises BadInput."""
    run = making.named(collection, name)
    values = {"collection": collection.name, "name": name}
    if run is None:
        raise BadInput(_("%(collection)s has no run %(name)s") % values)
    if run.state != Progress.READY:
        raise BadInput(_("run %(name)s of %(collection)s is not ready: wait until it is made") % values)
    return run


def _weights(given: Any, method: str, runs: int) -> list[float]:
    if not given:
        if runs != 2:
            raise BadInput(_("name a weight for each of the %(runs)s runs") % {"runs": runs})
        return list(hybrids.WEIGHTS[method])
    try:
        weights = [float(one) for one in given]
    except (TypeError, ValueError):
        weights = []
    if len(weights) != runs or not all(math.isfinite(one) and one >= 0 for one in weights) or not any(weights):
        raise BadInput(_("weights are numbers from 0 on, one for each of the %(runs)s runs") % {"runs": runs})
    return weights


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Each query by itself; seconds are those of the combination, not of the runs that it is made of."""
    parts = [rankings.scores_of(key) for key in run.recipe["ids"]]

    def rank(query: Query) -> Ranked:
        begin = perf_counter()
        found = [part.get(query.pk, NOTHING) for part in parts]
        documents, scores = hybrids.combine(found, run.recipe["weights"], run.recipe["method"])
        return Ranked(documents, scores, perf_counter() - begin)

    each_query(run, rank, progress, stopped)
