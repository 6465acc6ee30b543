"""Hybrid runs of a reranked run and BM25: each candidate's two scores combined by benchmark.runs.hybrid_scores."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import Run
from benchmark.runs import builders, hybrid_scores, lexical, rankings
from benchmark.runs.builders import Progress, ShouldStop, rank_each_query
from benchmark.runs.hybrid_scores import Scores
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Document, Query

# Kinds of a reranked run's scores: log odds, to which the sigmoid is applied; ERank's grades times
# their probability, with a mark for answers without a grade; or scores to use unchanged.
SCORE_KINDS = {
    "margins": gettext_lazy("log odds; the sigmoid was applied before combining"),
    "grades": gettext_lazy("grades; an answer without a grade counts as the lowest of its query"),
    "plain": gettext_lazy("used unchanged, without the sigmoid"),
}
# The kind of imported scores is not known. A score below 0 other than the mark shows that they are margins.
BELOW = """
SELECT COALESCE(bool_or(score < 0 AND score <> %(mark)s), false), COALESCE(bool_or(score = %(mark)s), false)
FROM benchmark_ranking CROSS JOIN unnest(scores) AS score WHERE run_id = %(run)s"""


PREPARED: dict[str, Callable[[Scores], Scores]] = {
    "margins": hybrid_scores.sigmoid,
    "grades": hybrid_scores.impute_ungraded,
    "plain": np.asarray,
}
"""The preparation of each kind of scores before they are combined."""


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `run` (reranked) or `runs` (BM25 and reranked), `method`, `k1`, `b`, `scores`, `weights`.

    With the method rrf: `runs`, two or more of any kind, or `run`, which is fused with BM25. Raises BadInput.
    """
    if recipe["method"] == hybrid_scores.RRF:
        return _check_fusion(collection, recipe)
    parameters, name = dict(recipe), str(recipe.get("run") or "")
    if names := list(recipe.get("runs", ())):
        if len(set(names)) != 2 or len(names) != 2 or name:
            message = _("Name two runs, the BM25 run and the run with scored documents, or only the second one as run")
            raise BadOption("runs", message)
        first, name = builders.ready_run(collection, names[0], "runs"), names[1]
        if first.kind != Run.Kind.BM25:
            message = _("Run %(name)s is not a BM25 run made here: name only the reranked run, with k1 and b for BM25")
            raise BadOption("runs", message % {"name": first.name})
        parameters = first.recipe | parameters
    if not name:
        message = _("A hybrid run needs a reranked run. Name one; the BM25 scores of its documents are computed")
        raise BadOption("run", message)
    run, method = builders.ready_run(collection, name), recipe["method"]
    return {
        "method": method,
        "run": run.name,
        "run_id": run.pk,
        "scores": recipe.get("scores") or kind_of_scores(run),
        "weights": list(recipe.get("weights") or hybrid_scores.WEIGHTS[method]),
        **lexical.check(collection, parameters),
    }


def _check_fusion(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `runs` and `run_ids`, and `k1` and `b` where one run is fused with BM25. Raises BadOption."""
    names, name = list(recipe.get("runs", ())), str(recipe.get("run") or "")
    for option in ("weights", "scores"):
        if recipe.get(option):
            raise BadOption(option, _("Reciprocal rank fusion reads ranks alone: leave this empty."))
    if name and names:
        raise BadOption("run", _("Name the runs to fuse, or one run that is fused with BM25, not both."))
    if not name and (len(names) < 2 or len(set(names)) != len(names)):
        raise BadOption("runs", _("Name two or more different runs to fuse, or one run that is fused with BM25."))
    fused = [builders.ready_run(collection, each, "runs" if names else "run") for each in names or [name]]
    document = {"method": hybrid_scores.RRF, "runs": [run.name for run in fused], "run_ids": [run.pk for run in fused]}
    return document | (lexical.check(collection, recipe) if name else {})


def kind_of_scores(run: Run) -> str:
    """Return one of SCORE_KINDS: what the model of the run writes, or for other runs what their scores look like."""
    if run.kind == Run.Kind.RERANK_FOLDER and (kind := run.recipe.get("writes")):
        return str(kind)
    with connection.cursor() as cursor:
        cursor.execute(BELOW, {"run": run.pk, "mark": hybrid_scores.NO_GRADE})
        has_margins, has_marks = cursor.fetchone()
    return "margins" if has_margins else "grades" if has_marks else "plain"


def describe_scores(run: Run) -> str:
    """Describe how a hybrid reads the reranked run's scores; empty for other runs."""
    if run.kind != Run.Kind.HYBRID or (description := SCORE_KINDS.get(run.recipe.get("scores", ""))) is None:
        return ""
    return _("scores of %(run)s: %(told)s") % {"run": run.recipe["run"], "told": description}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Make the run query by query; its seconds are only those of BM25 and of combining."""
    recipe = run.recipe
    if recipe["method"] == hybrid_scores.RRF:
        return _fuse(run, progress, should_stop)
    index = lexical.index_of(run, recipe, progress, should_stop)
    candidates = rankings.scores_of(recipe["run_id"])

    def rank(query: Query) -> RankedQuery:
        started_at = perf_counter()
        documents, scores = candidates.get(query.pk, (np.empty(0, np.int64), np.empty(0)))
        # A document that left the index has no BM25 score, and would be ranked wrongly without it.
        if not index.holds(documents):
            message = _("Documents in run %(name)s have since changed or been removed: create or import it again")
            raise BadInput(message % {"name": recipe["run"]})
        bm25 = index.scores(query.text, documents)
        prepared = PREPARED[recipe["scores"]](scores)
        combined = hybrid_scores.combine_scores(bm25, prepared, recipe["method"], recipe["weights"])
        return RankedQuery(documents, combined, perf_counter() - started_at)

    rank_each_query(run, rank, progress, should_stop)


def _fuse(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Fuse the runs over the union of their documents; a document that is not current any more is left out."""
    stored = [rankings.scores_of(key) for key in run.recipe["run_ids"]]
    index = lexical.index_of(run, run.recipe, progress, should_stop) if "k1" in run.recipe else None
    excluded = rankings.excluded_documents(run.collection)
    documents_now = Document.objects.filter(collection=run.collection, is_current=True)
    names = dict(documents_now.values_list("pk", "external_id"))

    def rank(query: Query) -> RankedQuery:
        started_at = perf_counter()
        lists = [ranked[query.pk][0].tolist() for ranked in stored if query.pk in ranked]
        if index is not None:
            # Left out before ranks are given, as they are in the stored runs.
            left_out = excluded.get(query.pk, frozenset())
            hits = [document for document, _score in index.search(query.text, run.depth + len(left_out))]
            lists.append([document for document in hits if names.get(document) not in left_out][: run.depth])
        scores = hybrid_scores.fuse_ranks(lists)
        documents = [document for document in scores if document in names]
        return RankedQuery(documents, [scores[document] for document in documents], perf_counter() - started_at)

    rank_each_query(run, rank, progress, should_stop)
