"""Runs out of a reranked run and BM25: each candidate's score of both, combined by benchmark.runs.hybrid_scores."""

import math
from time import perf_counter
from typing import Any

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import Run
from benchmark.runs import builders, hybrid_scores, lexical, rankings
from benchmark.runs.builders import Stopped, Tell, each_query
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.models import JobState

# What the reranked run's scores are: log odds, which go through the sigmoid, or to be taken as they are.
SCORES = ("margins", "plain")
TOLD = {
    "margins": gettext_lazy("log odds; the sigmoid was applied before combining"),
    "plain": gettext_lazy("used unchanged, without the sigmoid"),
}
# One negative score tells margins from probabilities.
NEGATIVE = "SELECT EXISTS (SELECT FROM benchmark_ranking WHERE run_id = %s AND 0 > ANY (scores))"


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`run` (the reranked one) or `runs` (BM25's and it), `method`, `k1`, `b`, `scores`, `weights`. Raises BadInput."""
    given = _normalise_runs(collection, recipe)
    if unknown := given.keys() - {"method", "run", "k1", "b", "scores", "weights"}:
        others = ", ".join(sorted(unknown))
        raise BadInput(
            _("a hybrid run accepts run, method, k1, b, scores and weights, not %(names)s") % {"names": others}
        )
    method = given.get("method") or "minmax"
    if method not in hybrid_scores.METHODS:
        values = {"method": method, "known": ", ".join(hybrid_scores.METHODS)}
        raise BadInput(_("unknown method %(method)s to combine runs: choose one of %(known)s") % values)
    if not given.get("run"):
        raise BadInput(_("a hybrid run needs a reranked run. Name one; the BM25 scores of its documents are computed"))
    run = ready_run(collection, str(given["run"]))
    scores = given.get("scores") or ("margins" if _has_negative(run) else "plain")
    if scores not in SCORES:
        raise BadInput(_("scores must be one of %(known)s") % {"known": ", ".join(SCORES)})
    return {
        "method": method,
        "run": run.name,
        "run_id": run.pk,
        "scores": scores,
        "weights": _check_weights(given.get("weights"), method),
        **lexical.bm25_parameters(given),
    }


def _normalise_runs(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """The recipe with `run` in place of `runs`."""
    if "runs" not in recipe:
        return recipe
    names = list(recipe["runs"])
    if len(names) != 2 or len(set(names)) < 2 or "run" in recipe:
        raise BadInput(
            _("name two runs, the BM25 run and the run with scored documents, or only the second one as run")
        )
    first = ready_run(collection, names[0])
    if first.kind != Run.Kind.BM25:
        raise BadInput(
            _("run %(name)s is not a BM25 run made here: name only the reranked run, with k1 and b for BM25")
            % {"name": first.name}
        )
    parameters = {key: first.recipe[key] for key in ("k1", "b") if key in first.recipe}
    return {**parameters, **{key: value for key, value in recipe.items() if key != "runs"}, "run": names[1]}


def ready_run(collection: Collection, name: str) -> Run:
    """The collection's run of this name, once it is made. Raises BadInput."""
    run = builders.find_run(collection, name)
    values = {"collection": collection.name, "name": name}
    if run is None:
        raise BadInput(_("%(collection)s has no run %(name)s") % values)
    if run.state != JobState.READY:
        raise BadInput(_("run %(name)s of %(collection)s is not ready: wait until it is finished") % values)
    return run


def _has_negative(run: Run) -> bool:
    """Return whether a score is below 0: margins of irrelevant documents are, shares and grades never."""
    with connection.cursor() as cursor:
        cursor.execute(NEGATIVE, [run.pk])
        return bool(cursor.fetchone()[0])


def _check_weights(given: Any, method: str) -> list[float]:
    if not given:
        return list(hybrid_scores.WEIGHTS[method])
    try:
        weights = [float(one) for one in given]
    except (TypeError, ValueError):
        weights = []
    if len(weights) != 2 or not all(math.isfinite(one) and one >= 0 for one in weights) or not any(weights):
        raise BadInput(_("weights must be two numbers of at least 0: for BM25 and for the reranked run"))
    return weights


def scores_told(run: Run) -> str:
    """Say how a hybrid read the reranked run's scores; empty for other runs."""
    if run.kind != Run.Kind.HYBRID or (told := TOLD.get(run.recipe.get("scores", ""))) is None:
        return ""
    return _("scores of %(run)s: %(told)s") % {"run": run.recipe["run"], "told": told}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Make the run query by query; its seconds are those of BM25 and combining, without the first run's."""
    recipe = run.recipe
    # Recipes of earlier versions combined two runs by name.
    if "run_id" not in recipe:
        told = _("run %(name)s uses an outdated form: delete it, and create it again from a reranked run")
        raise BadInput(told % {"name": run.name})
    index = lexical.index_of(run, progress, stopped)
    candidates = rankings.scores_of(recipe["run_id"])

    def rank(query: Query) -> RankedQuery:
        begin = perf_counter()
        documents, scores = candidates.get(query.pk, (np.empty(0, np.int64), np.empty(0)))
        # A document that left the index has no BM25 score: half a combination would rank it wrongly.
        if not index.holds(documents):
            told = _("documents in run %(name)s have since changed or been removed: create or import it again")
            raise BadInput(told % {"name": recipe["run"]})
        bm25 = index.scores(query.text, documents)
        given = hybrid_scores.sigmoid(scores) if recipe["scores"] == "margins" else scores
        combined = hybrid_scores.combine_scores(bm25, given, recipe["method"], recipe["weights"])
        return RankedQuery(documents, combined, perf_counter() - begin)

    each_query(run, rank, progress, stopped)
