"""Runs that search for what a judge wrote about the query: a rewriting (HyDE, query2doc, MuGI) or reasoning (BRIGHT).

A recipe with a `method` is a rewriting. A reranker over such a run sees the query as it stands.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.models import Run
from benchmark.runs import dense, lexical, llm_budget, rankings
from benchmark.runs.builders import RUNS, Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.models import Collection, Query
from corpus.search.text import tokenize_text
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.costs.token_mixes import mixes_of
from judges.prompts.searching import PASSAGE_SCHEMA, REASONING_SCHEMA, rewrite_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.model_requests import RetrievalReply, RetrievalRequest, Wanted

# Times that query2doc repeats the query before the passage (Wang et al. 2023, section 2: n = 5 for BM25).
REPEATS = 5
BETA = 4  # MuGI's weight of the references (Zhang et al. 2024, section 3.1).
# Texts that a method asks for, unless the recipe says otherwise.
SAMPLES = {"hyde": 1, "query2doc": 1, "mugi": 5}
LIKELY = 250  # Tokens of a text, as estimates expect them.


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """`method`, `judge`, `samples` (texts for each query), `over` (what searches). Raises BadInput.

    The collection's instruction is that of now.
    """
    judge = llm_budget.judge_of(_role(recipe), recipe)
    over = dict(recipe.get("over") or {"kind": str(Run.Kind.BM25)})
    if over["kind"] == Run.Kind.DENSE:
        over |= dense.check(collection, over)
    elif len(over) > 1:
        over |= lexical.check(collection, over)
    about: dict[str, Any] = {"judge": judge.name, "over": over, "instruction": collection.instruction}
    if method := recipe.get("method"):
        about |= {"method": method, "samples": recipe.get("samples") or SAMPLES[method]}
    return about


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the writing judge, and the embedding one for vectors. Raises BadInput."""
    writer, over = llm_budget.judge_of(_role(recipe), recipe), recipe["over"]
    return [writer, llm_budget.judge_of("embed", over)] if over["kind"] == Run.Kind.DENSE else [writer]


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Ask a judge about each query, all texts of a query at the same time; search for what the answers make.

    The ranking keeps the text that was searched for.
    """
    recipe, over = run.recipe, run.recipe["over"]
    campaign = RUNS.campaign_of(run)
    judge, *others = model_requests.judges_in(campaign)
    left_out = rankings.excluded_documents(run.collection)
    searcher = None
    if over["kind"] == Run.Kind.DENSE:
        searcher = dense.open_searcher(run, campaign, others[0], over, progress, stopped)
        if searcher is None:
            return
    else:
        index = lexical.index_of(run, over, progress, stopped)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        asked = [
            Wanted(query.pk, query.text, _requests(recipe, query, query.instruction or run.instruction))
            for query in batch
        ]
        reply = model_requests.ask_model(campaign, judge, asked, stopped=stopped)
        answered = llm_budget.answered_queries(reply, batch)
        texts = {
            key: combine_texts(recipe.get("method"), query.text, [turn.reason for turn in turns])
            for key, (query, turns) in answered.items()
        }
        depths = {key: run.depth + len(left_out.get(key, ())) for key in texts}
        if searcher is not None:
            ranked, later = searcher.search(texts, depths)
            # The search asks a model, too: in one reply, its limits and errors stop the run as the writer's do.
            reply.merge_status(later)
        else:
            ranked = {key: lexical.rank_by_bm25(index, text, depths[key]) for key, text in texts.items()}
        used = model_requests.usage_by_query(campaign, list(texts), [_role(recipe)])
        return {key: llm_budget.add_usage(one, used.get(key), texts[key]) for key, one in ranked.items()}, reply

    llm_budget.each_batch(run, work, progress, stopped)


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls of the judge who writes; those for vectors are not in it."""
    queries, judge = rankings.current_queries(collection, recipe), llm_budget.judge_of(_role(recipe), recipe)
    asked = [
        _requests(recipe, query, query.instruction or collection.instruction) for query in queries[: llm_budget.SAMPLED]
    ]
    prompts = [call.prompt for group in asked for call in group]
    # All queries are asked alike, so the first one tells how many calls each takes.
    each, schema = (len(asked[0]), dict(asked[0][0].schema)) if asked else (0, {})
    return of_calls(judge, each * len(queries), prompts, schema, LIKELY, mixes_of([judge]).get(judge.id, NO_MIX))


def _role(recipe: Mapping[str, Any]) -> str:
    return "rewrite" if "method" in recipe else "reason"


def _requests(recipe: Mapping[str, Any], query: Query, instruction: str) -> tuple[RetrievalRequest, ...]:
    """What is asked about a query, with the instruction that holds for it."""
    if "method" not in recipe:
        return (RetrievalRequest("reason", 0, rewrite_prompt("reason", query.text, instruction), REASONING_SCHEMA),)
    method, count = recipe["method"], recipe["samples"]
    prompts = [rewrite_prompt(method, query.text, instruction, place + 1, count) for place in range(count)]
    return tuple(RetrievalRequest("rewrite", place, prompt, PASSAGE_SCHEMA) for place, prompt in enumerate(prompts))


def combine_texts(method: str | None, query: str, texts: Sequence[str]) -> str:
    """The text that takes the query's place, by the method's own rule."""
    # The query is repeated so that its few words weigh as much as the passage's many.
    repeats = 0  # HyDE, and a reasoning: the query itself is not searched for.
    if method == "query2doc":
        repeats = REPEATS
    elif method == "mugi" and (size := len(tokenize_text(query))):
        # floor(words of all references / (words of the query x beta)), at least 1.
        repeats = max(1, sum(len(tokenize_text(text)) for text in texts) // (size * BETA))
    elif method == "mugi":
        repeats = 1
    return "\n".join([query] * repeats + list(texts))
