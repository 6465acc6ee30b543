"""Prompts for runs: query expansion, and the requests to rerankers and embedding models.

HyDE (Gao et al. 2023), query2doc (Wang et al. 2023), MuGI (Zhang et al. 2024) and reasoning as the query (BRIGHT), in
our own words. The answers of a query are never shown, because a search must not know them.
"""

import json
from collections.abc import Sequence

from judges.prompts.render import TEXT, TEXT_LIMIT, make_general_prompt, object_schema, step_prompt, truncated_field
from judges.records import Prompt

METHODS = ("hyde", "query2doc", "mugi")
PASSAGE_SCHEMA = object_schema(passage=TEXT)
REASONING_SCHEMA = object_schema(reasoning=TEXT)


def rewrite_prompt(method: str, query: str, instruction: str = "", number: int = 1, count: int = 1) -> Prompt:
    """Return the prompt for a passage that expands or replaces the query. `number` of `count` passages: for MuGI."""
    values = {"number": str(number), "count": str(count)} if method == "mugi" else {}
    fields = truncated_field("query", query, TEXT_LIMIT)
    if instruction.strip():
        fields["what counts as relevant"] = instruction[:TEXT_LIMIT]
    return step_prompt(method, fields, **values)


def plain_prompt(name: str, texts: Sequence[str], instruction: str = "") -> Prompt:
    """Return the texts that roles rank, embed and web send, to hash and to bound them. No model sees this form."""
    return make_general_prompt(name, instruction, json.dumps(list(texts), ensure_ascii=False))
