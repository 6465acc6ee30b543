"""Prompts for runs: a text to search for in place of a query, and what rerankers and embedders get.

HyDE (Gao et al. 2023), query2doc (Wang et al. 2023), MuGI (Zhang et al. 2024) and reasoning as the query (BRIGHT) in
our own words. The answers of a query are never shown: what is searched for must not know them.
"""

import json
from collections.abc import Sequence

from judges.prompts import templates
from judges.prompts.render import (
    TEXT,
    TEXT_LIMIT,
    delimit_content,
    dump_json,
    make_general_prompt,
    object_schema,
    truncated_field,
)
from judges.records import Prompt

METHODS = ("hyde", "query2doc", "mugi")
PASSAGE_SCHEMA = object_schema(passage=TEXT)
REASONING_SCHEMA = object_schema(reasoning=TEXT)


def rewrite_prompt(method: str, query: str, instruction: str = "", number: int = 1, count: int = 1) -> Prompt:
    """Return the prompt for a text to search for beside or instead of the query. `number`: of `count`, for MuGI."""
    places = {"number": str(number), "count": str(count)} if method == "mugi" else {}
    user = templates.render(method, data=delimit_content(_query_json(query, instruction)), **places)
    return make_general_prompt(method, templates.text(f"{method}-system"), user)


def reason_prompt(query: str, instruction: str = "") -> Prompt:
    """Thoughts about the query, to be searched for."""
    return rewrite_prompt("reason", query, instruction)


def plain_prompt(name: str, texts: Sequence[str], instruction: str = "") -> Prompt:
    """Write down what roles rank, embed and web send, for a hash and a bound. No model sees this form of it."""
    return make_general_prompt(name, instruction, json.dumps(list(texts), ensure_ascii=False))


def _query_json(query: str, instruction: str) -> str:
    fields = truncated_field("query", query, TEXT_LIMIT)
    if instruction.strip():
        fields["what counts as relevant"] = instruction[:TEXT_LIMIT]
    return dump_json(fields)
