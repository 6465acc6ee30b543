"""Prompts for runs: a text to search for in place of a query, and what rerankers and embedders get.

HyDE (Gao et al. 2023), query2doc (Wang et al. 2023), MuGI (Zhang et al. 2024) and reasoning as the
query (BRIGHT) in our own words. The answers of a query are never shown: what is searched for must
not know them.
"""

import json
from collections.abc import Sequence

from judges.prompts.render import TEXT, TEXT_LIMIT, make_general_prompt, object_schema, step_prompt, truncated_field
from judges.records import Prompt

METHODS = ("hyde", "query2doc", "mugi")
PASSAGE_SCHEMA = object_schema(passage=TEXT)
REASONING_SCHEMA = object_schema(reasoning=TEXT)


def rewrite_prompt(method: str, query: str, instruction: str = "", number: int = 1, count: int = 1) -> Prompt:
    """Return the prompt for a text to search for beside or instead of the query. `number`: of `count`, for MuGI."""
    places = {"number": str(number), "count": str(count)} if method == "mugi" else {}
    fields = truncated_field("query", query, TEXT_LIMIT)
    if instruction.strip():
        fields["what counts as relevant"] = instruction[:TEXT_LIMIT]
    return step_prompt(method, fields, **places)


def plain_prompt(name: str, texts: Sequence[str], instruction: str = "") -> Prompt:
    """Write down what roles rank, embed and web send, for a hash and a bound. No model sees this form of it."""
    return make_general_prompt(name, instruction, json.dumps(list(texts), ensure_ascii=False))
