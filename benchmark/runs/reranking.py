"""Reranking of any run at an endpoint in Cohere's and Jina's shape.

The model always sees the query as it stands: what the first run searched for (a rewriting, a
reasoning) is not shown to it.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from django.utils.translation import gettext as _

from benchmark.models import Ranking, Run
from benchmark.runs import builders, llm_budget, rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.vector_search import texts_of
from corpus.errors import BadOption
from corpus.models import Collection, Query
from corpus.rubric import AUTO, Rubric
from judges.campaigns.estimates import Estimate, of_calls
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.answers import scores_of
from judges.retrieval.model_requests import RetrievalReply, RetrievalRequest, Wanted

T = TypeVar("T")
ROLE = "rank"
TOP = 100  # Documents of a query that are reranked, unless the recipe says otherwise.
TOGETHER = 100  # Documents of one call, at most.
WRITTEN_TOGETHER = 20  # The same where evidence is written of each: more are refused by `serve_model`.


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """`run` (a name), `judge`, `instruction` or `instructions`, `top`. Raises BadInput."""
    return check_first_run(collection, recipe) | {"judge": llm_budget.judge_of(ROLE, recipe).name}


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the reranker."""
    return [llm_budget.judge_of(ROLE, recipe)]


def check_first_run(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return what a reranked run keeps of `run`, `top`, `instruction` and `instructions`. Raises BadInput.

    `instruction` is said with every query, else its definition of relevance; `instructions`: by
    query id, in place of either (FollowIR changes those of some queries).
    """
    first, own = builders.ready_run(collection, str(recipe.get("run") or "")), str(recipe.get("instruction") or "")
    # A recipe's own words hold for all queries; else each query brings its definition.
    told = {"instruction": own or collection.instruction, "by_query": not own, "rubric": collection.rubric}
    changed = dict(recipe.get("instructions") or {})
    known = Query.objects.filter(collection=collection, is_current=True, external_id__in=changed)
    if unknown := sorted(changed.keys() - set(known.values_list("external_id", flat=True))):
        values = {"query": repr(unknown[0]), "collection": collection.name}
        raise BadOption("instructions", _("%(collection)s has no query %(query)s") % values)
    told |= {"instructions": changed} if changed else {}
    return {"run": first.name, "run_id": first.pk, "top": recipe.get("top") or TOP, **told}


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Rank the first run's best documents anew; those below `top` are left out."""
    campaign = builders.RUNS.campaign_of(run)
    (judge,) = model_requests.judges_in(campaign)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        documents = first_documents(run.recipe, batch)
        texts = texts_of([key for keys in documents.values() for key in keys])
        asked = []
        for query in batch:
            instruction, parts = instruction_for(run.recipe, query), [texts[key] for key in documents[query.pk]]
            calls = tuple(
                RetrievalRequest(ROLE, at, plain_prompt(ROLE, [query.text, *part], instruction), documents=tuple(part))
                for at, part in enumerate(_split_documents(parts, judge))
            )
            asked.append(Wanted(query.pk, query.text, calls, instruction))
        answered = model_requests.ask_model(campaign, judge, asked, stopped=stopped)
        said = llm_budget.answered_queries(answered, batch)
        used = model_requests.usage_by_query(campaign, list(said), [ROLE])
        found = {}
        # Scores come call by call, in the order in which the documents were split.
        for key, (_query, turns) in said.items():
            scores = [score for turn in turns for score in scores_of(turn)]
            # A query of one document, or none, is not sent: there is nothing to order.
            ranked = RankedQuery(documents[key], scores or [0.0] * len(documents[key]))
            found[key] = llm_budget.add_usage(ranked, used.get(key))
        return found, answered

    llm_budget.each_batch(run, work, progress, stopped)


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls from the documents of the first queries."""
    queries, judge = rankings.current_queries(collection, recipe), llm_budget.judge_of(ROLE, recipe)
    sample = queries[: llm_budget.SAMPLED]
    documents = first_documents(recipe, sample)
    texts = texts_of([key for keys in documents.values() for key in keys])
    prompts = [
        plain_prompt(ROLE, [query.text, *part], instruction_for(recipe, query))
        for query in sample
        for part in _split_documents([texts[key] for key in documents[query.pk]], judge)
    ]
    # As many calls for each query as the sample needed, on average.
    calls = len(queries) * len(prompts) // max(1, len(sample))
    return of_calls(judge, calls, prompts, {}, 0)


def first_documents(recipe: dict[str, Any], batch: Sequence[Query]) -> dict[int, list[int]]:
    """Return by query the first run's documents, best first; [] for a query that it lacks."""
    rows = Ranking.objects.filter(run=recipe["run_id"], query__in=batch).values_list("query_id", "documents")
    found = {query: documents[: recipe["top"]] for query, documents in rows}
    return {query.pk: found.get(query.pk, []) for query in batch}


def instruction_for(recipe: dict[str, Any], query: Query) -> str:
    """Return the instruction: the recipe's for this query, or for all, or the query's definition of relevance."""
    if (changed := recipe.get("instructions", {}).get(query.external_id)) is not None:
        return str(changed)
    own = str(recipe["instruction"])
    return Rubric(recipe.get("rubric", AUTO), own).of(query).statement if recipe["by_query"] else own


def _split_documents(documents: Sequence[T], judge: Judge) -> list[list[T]]:
    """Split documents into few calls of like size; none where nothing is to be ordered."""
    if len(documents) < 2:
        return []
    # Parts are alike in size, so that the last call is not left with a document or two.
    number = -(-len(documents) // (WRITTEN_TOGETHER if judge.parameters.get("evidence") else TOGETHER))
    bounds = np.linspace(0, len(documents), number + 1).astype(int).tolist()
    return [list(documents[begin:end]) for begin, end in pairwise(bounds)]


def load_evidence(run: Run, queries: Sequence[Query]) -> dict[tuple[int, int], str] | None:
    """The evidence that a run's own reranker wrote while it ranked, by query and document; None: it writes none."""
    if run.kind != Run.Kind.RERANK or run.campaign is None:
        return None
    # In the version that it ranked with.
    (judge,) = model_requests.judges_in(Campaign.objects.get(pk=run.campaign))
    if not judge.parameters.get("evidence"):
        return None
    places = first_documents(run.recipe, queries)
    # Answers alone: a refused call wrote none.
    calls = RetrievalCall.objects.filter(campaign=run.campaign, role=ROLE, outcome="labelled", query__in=places)
    found: dict[tuple[int, int], str] = {}
    for query, part, raw in calls.order_by("id").values_list("query", "sample", "raw"):
        assert query is not None  # calls of this role are about a query
        # The same split as when it was asked, so that an index in the answer means the same document.
        documents = _split_documents(places[query], judge)[part]
        for one in json.loads(zlib.decompress(bytes(raw)))["results"]:
            if text := (one.get("evidence") or "").strip():
                found[query, documents[one["index"]]] = text
    return found
