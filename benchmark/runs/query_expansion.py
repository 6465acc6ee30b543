"""Runs that search for what a judge wrote about the query: the part that rewriting and reasoning share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmark.models import Run
from benchmark.runs import llm_budget, rankings, searching
from benchmark.runs.builders import RUNS, Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.models import Collection, Query
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.costs.token_mixes import mixes_of
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.model_requests import RetrievalReply, RetrievalRequest, Wanted

LIKELY = 250  # Tokens of a text, as estimates expect them.

# What is asked about a query, with the instruction that holds for it.
Calls = Callable[[Query, str], tuple[RetrievalRequest, ...]]


def check_expansion(collection: Collection, role: str, recipe: dict[str, Any]) -> dict[str, Any]:
    """The judge, what searches, the collection's instruction as it is now. Raises BadInput."""
    judge = llm_budget.judge_of(role, recipe)  # said first where both are wrong
    over = searching.check_searcher(collection, recipe.get("over"))
    return {"judge": judge.name, "over": over, "instruction": collection.instruction}


def judges_of(role: str, recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the judge that writes, and the one that embeds where vectors are searched. Raises BadInput."""
    writer, over = llm_budget.judge_of(role, recipe), recipe["over"]
    return [writer, llm_budget.judge_of("embed", over)] if over["kind"] == "dense" else [writer]


def make_expanded_run(
    run: Run,
    role: str,
    calls: Calls,
    text_of: Callable[[str, Sequence[str]], str],
    progress: Tell,
    stopped: Stopped,
) -> None:
    """Ask a judge about each query, make one text of the answers, and search for it; the ranking keeps the text."""
    over = run.recipe["over"]
    campaign = RUNS.campaign_of(run)
    judge, *others = model_requests.judges_in(campaign)
    searcher = searching.open_searcher(run, campaign, others, over, progress, stopped)
    if searcher is None:
        return
    left_out = rankings.excluded_documents(run.collection)

    def wanted(query: Query) -> Wanted:
        return Wanted(query.pk, query.text, calls(query, query.instruction or run.instruction))

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        answered = model_requests.ask_model(campaign, judge, [wanted(query) for query in batch], stopped=stopped)
        said = llm_budget.answered_queries(answered, batch)
        texts = {key: text_of(query.text, [turn.reason for turn in turns]) for key, (query, turns) in said.items()}
        depths = {key: run.depth + len(left_out.get(key, ())) for key in texts}
        found, later = searcher.search(texts, depths)
        # A dense search asks a model, too: kept in one reply, its limits and errors stop the run as the writer's do.
        answered.merge_status(later)
        used = model_requests.usage_by_query(campaign, list(texts), [role])
        return {key: llm_budget.add_usage(one, used.get(key), texts[key]) for key, one in found.items()}, answered

    llm_budget.each_batch(run, work, progress, stopped)


def estimate_cost(collection: Collection, recipe: Mapping[str, Any], judge: Judge, calls: Calls) -> Estimate:
    """Estimate the calls of the judge who writes; those for vectors are not in it."""
    queries = rankings.current_queries(collection, recipe)
    asked = [calls(query, query.instruction or collection.instruction) for query in queries[: llm_budget.SAMPLED]]
    prompts = [call.prompt for group in asked for call in group]
    # All queries are asked alike, so the first one tells how many calls each takes.
    each = len(asked[0]) if asked else 0
    schema = dict(asked[0][0].schema) if asked else {}
    return of_calls(judge, each * len(queries), prompts, schema, LIKELY, mixes_of([judge]).get(judge.id, NO_MIX))
