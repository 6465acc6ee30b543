"""Prompt files with checked placeholders: a template with an unknown or a missing placeholder never renders."""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")

# Names of templates, by their placeholders.
NAMES = {
    "assessors definition with_answers": "debate-system argue-system",
    "inputs others own stances": "debate-first argue-first",
    "history inputs others own previous round": "debate-later",
    "history inputs others own previous response round": "argue-later",
    "definition with_answers": "adjudicate-system decision-system vote-system verdict-only-system score-chain-system "
    "prefer-system",
    "history inputs": "adjudicate",
    "definition highest scale with_answers": "graded-system",
    "inputs": "decision vote",
    "": "scale-1 scale-3 scale-10 write-system entity-system measure-system hyde-system query2doc-system "
    "mugi-system reason-system rank embed web "
    "rag-answer-system rag-correct-system "
    "synth-persona-system synth-classify-system synth-outline-system synth-decompose-system "
    "synth-blueprint-system synth-negatives-system synth-compose-system "
    "query-keywords-system query-ask-system "
    "agent-system agent-evidence-system agent-assess-system agent-reference-system",
    "document query": "inputs",
    "first query second": "prefer",
    "problem request": "repair",
    "definition inputs": "write",
    "definition earlier inputs": "write-again",
    "data": "entity hyde query2doc reason rag-answer rag-correct "
    "synth-persona synth-classify synth-outline synth-decompose synth-blueprint synth-negatives synth-compose "
    "query-keywords query-ask "
    "agent-search agent-answer agent-evidence agent-assess agent-reference",
    "definition inputs written": "measure",
    "count data number": "mugi",
    "keys": "answer-words answer-tool",
}
PLACEHOLDERS = {name: frozenset(places.split()) for places, names in NAMES.items() for name in names.split()}


@cache
def text(name: str) -> str:
    """Return the template without its last newline. Raises ValueError unless its placeholders are the declared ones."""
    template = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")
    placeholders = frozenset(_PLACE.findall(template))
    if placeholders != PLACEHOLDERS[name]:
        raise ValueError(f"{name}.txt has the placeholders {sorted(placeholders)}, not {sorted(PLACEHOLDERS[name])}.")
    return template


def render(name: str, **values: str) -> str:
    """Return the template with its placeholders filled, in one pass: values are never searched for placeholders."""
    if values.keys() != PLACEHOLDERS[name]:
        raise ValueError(f"{name} takes {sorted(PLACEHOLDERS[name])}, not {sorted(values)}.")
    return _PLACE.sub(lambda match: values[match[1]], text(name))
