"""Runs by query rewriting: HyDE, query2doc and MuGI, each by a judge of the judges file."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import llm_budget, query_expansion
from benchmark.runs.builders import Stopped, Tell
from corpus.errors import BadInput
from corpus.models import Collection, Query
from corpus.search.text import tokenize_text
from judges.campaigns.estimates import Estimate
from judges.prompts.searching import METHODS, PASSAGE_SCHEMA, rewrite_prompt
from judges.records import Judge
from judges.retrieval.model_requests import RetrievalRequest

ROLE = "rewrite"
MOST = 20  # Texts for one query.
# Times that query2doc repeats the query before the passage (Wang et al. 2023, section 2: n = 5 for BM25).
REPEATS = 5
BETA = 4  # MuGI's weight of the references (Zhang et al. 2024, section 3.1).
# Texts that a method asks for, unless the recipe says otherwise.
SAMPLES = {"hyde": 1, "query2doc": 1, "mugi": 5}


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`method`, `judge`, `samples` (texts for each query), `over` (what searches). Raises BadInput."""
    llm_budget.known_keys(recipe, ("method", "judge", "samples", "over"))
    method = recipe.get("method", METHODS[0])
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise BadInput(_("Method %(method)s: choose one of %(known)s") % {"method": repr(method), "known": known})
    samples = recipe.get("samples") or SAMPLES[method]
    if not isinstance(samples, int) or isinstance(samples, bool) or not 1 <= samples <= MOST:
        raise BadInput(_("Samples must be a whole number from 1 to %(most)s") % {"most": MOST})
    return {"method": method, "samples": samples, **query_expansion.check_expansion(collection, ROLE, recipe)}


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return who writes, and who embeds."""
    return query_expansion.judges_of(ROLE, recipe)


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Search for texts that a judge wrote; all of a query are asked for at the same time."""
    method = run.recipe["method"]
    query_expansion.make_expanded_run(
        run, ROLE, _request_builder(run.recipe), partial(combine_texts, method), progress, stopped
    )


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls of the judge; vectors are not in it."""
    return query_expansion.estimate_cost(
        collection, recipe, llm_budget.judge_of(ROLE, recipe), _request_builder(recipe)
    )


def _request_builder(recipe: dict[str, Any]) -> query_expansion.Calls:
    method, count = recipe["method"], recipe["samples"]

    def calls(query: Query, instruction: str) -> tuple[RetrievalRequest, ...]:
        prompts = [rewrite_prompt(method, query.text, instruction, place + 1, count) for place in range(count)]
        return tuple(RetrievalRequest(ROLE, place, prompt, PASSAGE_SCHEMA) for place, prompt in enumerate(prompts))

    return calls


def combine_texts(method: str, query: str, texts: Sequence[str]) -> str:
    """The text that takes the query's place, by the method's own rule."""
    # The query is repeated so that its few words weigh as much as the passage's many; HyDE leaves it out.
    if method == "query2doc":
        return "\n".join([query] * REPEATS + list(texts))
    if method == "mugi":
        return "\n".join([query] * count_repeats(query, texts) + list(texts))
    return "\n".join(texts)  # HyDE: the query itself is not searched for


def count_repeats(query: str, texts: Sequence[str]) -> int:
    """Count MuGI's repeats of the query: floor(words of all references / (words of the query x beta)), at least 1."""
    size = len(tokenize_text(query))
    return max(1, sum(len(tokenize_text(text)) for text in texts) // (size * BETA)) if size else 1
