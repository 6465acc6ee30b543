"""Reranking of any run at an endpoint in the format of Cohere and Jina.

The model always sees the original query, and not the text that the first run searched for (a
rewriting, a reasoning).
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
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.vector_search import texts_of
from corpus.errors import BadOption
from corpus.models import Collection, Query
from corpus.rubric import AUTO, Rubric
from judges.campaigns.estimates import Estimate, of_calls
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.retrieval import scores_of
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.model_requests import QueryRequests, RetrievalReply, RetrievalRequest

T = TypeVar("T")
ROLE = "rank"
TOP = 100  # Documents per query that are reranked by default.
TOGETHER = 100  # The most documents in one call.
WRITTEN_TOGETHER = 20  # The same where evidence is written for each; `serve_model` rejects more.


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `run` (a name), `judge`, `instruction` or `instructions`, `top`. Raises BadInput."""
    return check_first_run(collection, recipe) | {"judge": llm_budget.judge_of(ROLE, recipe).name}


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the reranker."""
    return [llm_budget.judge_of(ROLE, recipe)]


def check_first_run(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return what a reranked run records of `run`, `top`, `instruction` and `instructions`. Raises BadInput.

    `instruction` is sent with every query; without it, the query's definition of relevance is.
    `instructions` replace either by query id (FollowIR changes those of some queries).
    """
    first = builders.ready_run(collection, str(recipe.get("run") or ""))
    instruction = str(recipe.get("instruction") or "")
    # Without an instruction in the recipe, each query has its definition of relevance.
    recorded: dict[str, Any] = {
        "instruction": instruction or collection.instruction,
        "by_query": not instruction,
        "rubric": collection.rubric,
    }
    instructions = dict(recipe.get("instructions") or {})
    rows = Query.objects.filter(collection=collection, is_current=True, external_id__in=instructions)
    if unknown := sorted(instructions.keys() - set(rows.values_list("external_id", flat=True))):
        values = {"query": repr(unknown[0]), "collection": collection.name}
        raise BadOption("instructions", _("%(collection)s has no query %(query)s") % values)
    recorded |= {"instructions": instructions} if instructions else {}
    return {"run": first.name, "run_id": first.pk, "top": recipe.get("top") or TOP, **recorded}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Rerank the best documents of the first run; those below `top` are left out."""
    campaign = builders.RUNS.campaign_of(run)
    (judge,) = model_requests.judges_in(campaign)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        documents = first_documents(run.recipe, batch)
        texts = texts_of([key for keys in documents.values() for key in keys])
        requests = []
        for query in batch:
            instruction, parts = instruction_for(run.recipe, query), [texts[key] for key in documents[query.pk]]
            calls = tuple(
                RetrievalRequest(
                    ROLE, index, plain_prompt(ROLE, [query.text, *part], instruction), documents=tuple(part)
                )
                for index, part in enumerate(_split_documents(parts, judge))
            )
            requests.append(QueryRequests(query.pk, query.text, calls, instruction))
        reply = model_requests.ask_model(campaign, judge, requests, should_stop=should_stop)
        answers = llm_budget.answered_queries(reply, batch)
        usage = model_requests.usage_by_query(campaign, list(answers), [ROLE])
        rankings_by_query = {}
        # Scores come call by call, in the order in which the documents were split.
        for key, (_query, turns) in answers.items():
            scores = [score for turn in turns for score in scores_of(turn)]
            # A query of one document, or none, is not sent: there is nothing to order.
            ranked = RankedQuery(documents[key], scores or [0.0] * len(documents[key]))
            rankings_by_query[key] = llm_budget.add_usage(ranked, usage.get(key))
        return rankings_by_query, reply

    llm_budget.rank_batches(run, work, progress, should_stop)


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
    # As many calls per query as for the sample, on average.
    calls = len(queries) * len(prompts) // max(1, len(sample))
    return of_calls(judge, calls, prompts, {}, 0)


def first_documents(recipe: dict[str, Any], batch: Sequence[Query]) -> dict[int, list[int]]:
    """Return by query the first run's best documents, best first; [] for a query that it lacks."""
    rows = Ranking.objects.filter(run=recipe["run_id"], query__in=batch).values_list("query_id", "documents")
    documents_of = {query: documents[: recipe["top"]] for query, documents in rows}
    return {query.pk: documents_of.get(query.pk, []) for query in batch}


def instruction_for(recipe: dict[str, Any], query: Query) -> str:
    """Return the recipe's instruction for this query or for all queries, or the query's definition of relevance."""
    if (replacement := recipe.get("instructions", {}).get(query.external_id)) is not None:
        return str(replacement)
    instruction = str(recipe["instruction"])
    return Rubric(recipe.get("rubric", AUTO), instruction).of(query).statement if recipe["by_query"] else instruction


def _split_documents(documents: Sequence[T], judge: Judge) -> list[list[T]]:
    """Split documents into few calls of similar size; no calls for fewer than two documents."""
    if len(documents) < 2:
        return []
    # Of similar size, so that the last call does not have only a document or two.
    number = -(-len(documents) // (WRITTEN_TOGETHER if judge.parameters.get("evidence") else TOGETHER))
    bounds = np.linspace(0, len(documents), number + 1).astype(int).tolist()
    return [list(documents[begin:end]) for begin, end in pairwise(bounds)]


def load_evidence(run: Run, queries: Sequence[Query]) -> dict[tuple[int, int], str] | None:
    """Load the evidence that the run's reranker wrote, by query and document; None if it writes none."""
    if run.kind != Run.Kind.RERANK or run.campaign is None:
        return None
    # The version that ranked.
    (judge,) = model_requests.judges_in(Campaign.objects.get(pk=run.campaign))
    if not judge.parameters.get("evidence"):
        return None
    documents_of = first_documents(run.recipe, queries)
    # Only answered calls have evidence.
    calls = RetrievalCall.objects.filter(campaign=run.campaign, role=ROLE, outcome="labelled", query__in=documents_of)
    evidence: dict[tuple[int, int], str] = {}
    for query, part, raw in calls.order_by("id").values_list("query", "sample", "raw"):
        assert query is not None  # Calls of this role are about a query.
        # The same split as in the request, so that an index in the answer means the same document.
        documents = _split_documents(documents_of[query], judge)[part]
        for result in json.loads(zlib.decompress(bytes(raw)))["results"]:
            if text := (result.get("evidence") or "").strip():
                evidence[query, documents[result["index"]]] = text
    return evidence
