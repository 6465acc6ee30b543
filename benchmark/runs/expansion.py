"""Runs by query expansion: a search for a text by a model, a rewriting (HyDE, query2doc, MuGI) or reasoning (BRIGHT).

A recipe with a `method` is a rewriting. A reranker over such a run sees the original query.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.models import Run
from benchmark.runs import dense, lexical, llm_budget, rankings
from benchmark.runs.builders import RUNS, Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from corpus.models import Collection, Query
from corpus.search.text import tokenize_text
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.campaigns.token_mixes import mixes_of
from judges.prompts.searching import PASSAGE_SCHEMA, REASONING_SCHEMA, rewrite_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.model_requests import QueryRequests, RetrievalReply, RetrievalRequest

# Times that query2doc repeats the query before the passage (Wang et al. 2023, section 2: n = 5 for BM25).
REPEATS = 5
BETA = 4  # MuGI's weight of the references (Zhang et al. 2024, section 3.1).
# Texts per query of a method by default.
SAMPLES = {"hyde": 1, "query2doc": 1, "mugi": 5}
LIKELY = 250  # Tokens that estimates expect of a text.


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete `method`, `judge`, `samples` (texts per query), `over` (the search). Raises BadInput.

    The recipe records the collection's current instruction.
    """
    judge = llm_budget.judge_of(_role(recipe), recipe)
    over = dict(recipe.get("over") or {"kind": str(Run.Kind.BM25)})
    if over["kind"] == Run.Kind.DENSE:
        over |= dense.check(collection, over)
    elif len(over) > 1:
        over |= lexical.check(collection, over)
    completed: dict[str, Any] = {"judge": judge.name, "over": over, "instruction": collection.instruction}
    if method := recipe.get("method"):
        completed |= {"method": method, "samples": recipe.get("samples") or SAMPLES[method]}
    return completed


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the judge that writes, and the embedding model of a dense search. Raises BadInput."""
    writer, over = llm_budget.judge_of(_role(recipe), recipe), recipe["over"]
    return [writer, llm_budget.judge_of("embed", over)] if over["kind"] == Run.Kind.DENSE else [writer]


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Ask a judge for the texts of each query, all at the same time, and search for them.

    The ranking records the text that was searched for.
    """
    recipe, over = run.recipe, run.recipe["over"]
    campaign = RUNS.campaign_of(run)
    judge, *others = model_requests.judges_in(campaign)
    excluded = rankings.excluded_documents(run.collection)
    searcher = None
    if over["kind"] == Run.Kind.DENSE:
        searcher = dense.open_searcher(run, campaign, others[0], over, progress, should_stop)
        if searcher is None:
            return
    else:
        index = lexical.index_of(run, over, progress, should_stop)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        requests = [
            QueryRequests(query.pk, query.text, _requests(recipe, query, query.instruction or run.instruction))
            for query in batch
        ]
        reply = model_requests.ask_model(campaign, judge, requests, should_stop=should_stop)
        answers = llm_budget.answered_queries(reply, batch)
        texts = {
            key: combine_texts(recipe.get("method"), query.text, [turn.reason for turn in turns])
            for key, (query, turns) in answers.items()
        }
        depths = {key: run.depth + len(excluded.get(key, ())) for key in texts}
        if searcher is not None:
            ranked, search_reply = searcher.search(texts, depths)
            # The search asks a model, too: its limits and errors stop the run as the writer's do.
            reply.merge_status(search_reply)
        else:
            ranked = {key: lexical.rank_by_bm25(index, text, depths[key]) for key, text in texts.items()}
        usage = model_requests.usage_by_query(campaign, list(texts), [_role(recipe)])
        ranked = {key: llm_budget.add_usage(ranking, usage.get(key), texts[key]) for key, ranking in ranked.items()}
        return ranked, reply

    llm_budget.rank_batches(run, work, progress, should_stop)


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls of the judge that writes, without those for vectors."""
    queries, judge = rankings.current_queries(collection, recipe), llm_budget.judge_of(_role(recipe), recipe)
    sample = [
        _requests(recipe, query, query.instruction or collection.instruction) for query in queries[: llm_budget.SAMPLED]
    ]
    prompts = [call.prompt for group in sample for call in group]
    # All queries take the same number of calls.
    calls_per_query, schema = (len(sample[0]), dict(sample[0][0].schema)) if sample else (0, {})
    mix = mixes_of([judge]).get(judge.id, NO_MIX)
    return of_calls(judge, calls_per_query * len(queries), prompts, schema, LIKELY, mix)


def _role(recipe: Mapping[str, Any]) -> str:
    return "rewrite" if "method" in recipe else "reason"


def _requests(recipe: Mapping[str, Any], query: Query, instruction: str) -> tuple[RetrievalRequest, ...]:
    """Return the requests for a query under its instruction."""
    if "method" not in recipe:
        return (RetrievalRequest("reason", 0, rewrite_prompt("reason", query.text, instruction), REASONING_SCHEMA),)
    method, count = recipe["method"], recipe["samples"]
    prompts = [rewrite_prompt(method, query.text, instruction, index + 1, count) for index in range(count)]
    return tuple(RetrievalRequest("rewrite", index, prompt, PASSAGE_SCHEMA) for index, prompt in enumerate(prompts))


def combine_texts(method: str | None, query: str, texts: Sequence[str]) -> str:
    """Combine the query and the written texts into the text to search for, by the rule of the method."""
    # The query is repeated so that its few words weigh as much as the passage's many.
    repeats = 0  # HyDE and reasoning do not search for the query itself.
    if method == "query2doc":
        repeats = REPEATS
    elif method == "mugi" and (size := len(tokenize_text(query))):
        # floor(words of all references / (words of the query x beta)), at least 1.
        repeats = max(1, sum(len(tokenize_text(text)) for text in texts) // (size * BETA))
    elif method == "mugi":
        repeats = 1
    return "\n".join([query] * repeats + list(texts))
