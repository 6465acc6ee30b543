"""Runs out of a reranked run and BM25: each candidate's score of both, combined by benchmark.runs.hybrid_scores."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import Run
from benchmark.runs import builders, hybrid_scores, lexical, rankings
from benchmark.runs.builders import Stopped, Tell, each_query
from benchmark.runs.hybrid_scores import Scores
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Query

# What the reranked run's scores are: log odds, which go through the sigmoid; ERank's grades times
# their probability, among which an answer without a grade has a mark; or to be taken as they are.
TOLD = {
    "margins": gettext_lazy("log odds; the sigmoid was applied before combining"),
    "grades": gettext_lazy("grades; an answer without a grade counts as the lowest of its query"),
    "plain": gettext_lazy("used unchanged, without the sigmoid"),
}
# Of imported scores nobody says what they are. A score below 0 that is no mark tells margins from shares and grades.
BELOW = """
SELECT COALESCE(bool_or(score < 0 AND score <> %(mark)s), false), COALESCE(bool_or(score = %(mark)s), false)
FROM benchmark_ranking CROSS JOIN unnest(scores) AS score WHERE run_id = %(run)s"""


PREPARED: dict[str, Callable[[Scores], Scores]] = {
    "margins": hybrid_scores.sigmoid,
    "grades": hybrid_scores.impute_ungraded,
    "plain": np.asarray,
}
"""What is combined of each kind of scores."""


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """`run` (the reranked one) or `runs` (BM25's and it), `method`, `k1`, `b`, `scores`, `weights`. Raises BadInput."""
    parameters, name = dict(recipe), str(recipe.get("run") or "")
    if names := list(recipe.get("runs", ())):
        if len(set(names)) != 2 or len(names) != 2 or name:
            told = _("Name two runs, the BM25 run and the run with scored documents, or only the second one as run")
            raise BadOption("runs", told)
        first, name = builders.ready_run(collection, names[0], "runs"), names[1]
        if first.kind != Run.Kind.BM25:
            told = _("Run %(name)s is not a BM25 run made here: name only the reranked run, with k1 and b for BM25")
            raise BadOption("runs", told % {"name": first.name})
        parameters = first.recipe | parameters
    if not name:
        told = _("A hybrid run needs a reranked run. Name one; the BM25 scores of its documents are computed")
        raise BadOption("run", told)
    run, method = builders.ready_run(collection, name), recipe["method"]
    return {
        "method": method,
        "run": run.name,
        "run_id": run.pk,
        "scores": recipe.get("scores") or kind_of_scores(run),
        "weights": list(recipe.get("weights") or hybrid_scores.WEIGHTS[method]),
        **lexical.check(collection, parameters),
    }


def kind_of_scores(run: Run) -> str:
    """Return one of TOLD: what the model of the run writes; of runs without a known model, what their scores are."""
    if run.kind == Run.Kind.RERANK_FOLDER and (written := run.recipe.get("writes")):
        return str(written)
    with connection.cursor() as cursor:
        cursor.execute(BELOW, {"run": run.pk, "mark": hybrid_scores.NO_GRADE})
        has_margins, has_marks = cursor.fetchone()
    return "margins" if has_margins else "grades" if has_marks else "plain"


def scores_told(run: Run) -> str:
    """Say how a hybrid read the reranked run's scores; empty for other runs."""
    if run.kind != Run.Kind.HYBRID or (told := TOLD.get(run.recipe.get("scores", ""))) is None:
        return ""
    return _("scores of %(run)s: %(told)s") % {"run": run.recipe["run"], "told": told}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Make the run query by query; its seconds are BM25's and combining's alone."""
    recipe = run.recipe
    index = lexical.index_of(run, recipe, progress, stopped)
    candidates = rankings.scores_of(recipe["run_id"])

    def rank(query: Query) -> RankedQuery:
        begin = perf_counter()
        documents, scores = candidates.get(query.pk, (np.empty(0, np.int64), np.empty(0)))
        # A document that left the index has no BM25 score: half a combination would rank it wrongly.
        if not index.holds(documents):
            told = _("Documents in run %(name)s have since changed or been removed: create or import it again")
            raise BadInput(told % {"name": recipe["run"]})
        bm25 = index.scores(query.text, documents)
        ready = PREPARED[recipe["scores"]](scores)
        combined = hybrid_scores.combine_scores(bm25, ready, recipe["method"], recipe["weights"])
        return RankedQuery(documents, combined, perf_counter() - begin)

    each_query(run, rank, progress, stopped)
