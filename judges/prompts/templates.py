"""Prompt files with checked placeholders. A template that names an unknown place, or misses one, never renders."""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")

PLACES: dict[str, frozenset[str]] = {
    "debate-system": frozenset({"assessors", "definition", "with_answers"}),
    "debate-first": frozenset({"inputs", "stances", "own", "others"}),
    "debate-later": frozenset({"inputs", "previous", "history", "round", "own", "others"}),
    "argue-system": frozenset({"assessors", "definition", "with_answers"}),
    "argue-first": frozenset({"inputs", "stances", "own", "others"}),
    "argue-later": frozenset({"inputs", "previous", "history", "round", "own", "others", "response"}),
    "adjudicate-system": frozenset({"definition", "with_answers"}),
    "adjudicate": frozenset({"inputs", "history"}),
    "graded-system": frozenset({"definition", "with_answers", "scale", "highest"}),
    "decision-system": frozenset({"definition", "with_answers"}),
    "decision": frozenset({"inputs"}),
    "scale-1": frozenset(),
    "scale-3": frozenset(),
    "scale-10": frozenset(),
    "vote-system": frozenset({"definition", "with_answers"}),
    "verdict-only-system": frozenset({"definition", "with_answers"}),
    "score-chain-system": frozenset({"definition", "with_answers"}),
    "vote": frozenset({"inputs"}),
    "inputs": frozenset({"query", "document"}),
    "repair": frozenset({"request", "problem"}),
    "write-system": frozenset(),
    "write": frozenset({"definition", "inputs"}),
    "write-again": frozenset({"definition", "inputs", "earlier"}),
    "entity-system": frozenset(),
    "entity": frozenset({"data"}),
    "measure-system": frozenset(),
    "measure": frozenset({"definition", "inputs", "written"}),
    "hyde-system": frozenset(),
    "hyde": frozenset({"data"}),
    "query2doc-system": frozenset(),
    "query2doc": frozenset({"data"}),
    "mugi-system": frozenset(),
    "mugi": frozenset({"data", "number", "count"}),
    "reason-system": frozenset(),
    "reason": frozenset({"data"}),
    "answer-words": frozenset({"keys"}),
    "answer-tool": frozenset({"keys"}),
    "rank": frozenset(),
    "embed": frozenset(),
}


@cache
def text(name: str) -> str:
    """The template as it is stored, without its last newline. Raises ValueError when its places are not as declared."""
    template = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")
    found = frozenset(_PLACE.findall(template))
    if found != PLACES[name]:
        raise ValueError(f"{name}.txt has the places {sorted(found)}, not {sorted(PLACES[name])}.")
    return template


def render(name: str, **values: str) -> str:
    """The template with its places filled, in one pass: what is filled in is never looked at again."""
    if values.keys() != PLACES[name]:
        raise ValueError(f"{name} takes {sorted(PLACES[name])}, not {sorted(values)}.")
    return _PLACE.sub(lambda match: values[match[1]], text(name))
