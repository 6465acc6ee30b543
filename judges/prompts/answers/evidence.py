"""Parsing of answers about contribution and evidence, as strict as that of verdicts (judges.domain.verdicts). Pure.

The engine passes the answers on as a Turn whose verdict has no meaning and is not stored: a written target is the text
in `reason`, entities are quotes located in the document, scores are JSON in `reason`.
"""

import json
from collections.abc import Mapping
from typing import Any

from corpus.evidence.measures import DIMENSIONS, EvidenceTarget, Malformed, check_target
from judges.domain.quotes import locate_quote
from judges.domain.verdicts import STRICT, OutOfRange, ParsingRules, Unparsed, check_string, fields_of
from judges.records import Turn

MOST = 200  # Entities of one text that are read; further ones are dropped.


def parse_answer(role: str, text: str, document: str, rules: ParsingRules = STRICT) -> Turn:
    """Return the answer to a question of this role. Raises Unparsed, OutOfRange."""
    if role == "write":
        fields = fields_of(text, rules, required={"contribution", "evidence"})
        target = EvidenceTarget(*(check_string(fields[name], name).strip() for name in ("contribution", "evidence")))
        try:
            check_target(target.contribution, target.evidence)
        except Malformed as error:
            raise Unparsed(str(error)) from error
        return Turn(1, target.text)
    if role == "entity":
        entities = fields_of(text, rules, required={"entities"})["entities"]
        if not isinstance(entities, list):
            raise Unparsed('"entities" is not a list of strings')
        names = dict.fromkeys(check_string(name, "entities").strip() for name in entities)
        return Turn(1, "", tuple(locate_quote(name, document) for name in list(names)[:MOST] if name))
    fields = fields_of(text, rules, required=set(DIMENSIONS), optional={"note"})
    scores: dict[str, Any] = {name: _read_score(fields, name) for name in DIMENSIONS}
    return Turn(1, json.dumps({"note": check_string(fields.get("note", ""), "note"), **scores}))


def entities_of(turn: Turn) -> tuple[str, ...]:
    """Return the entities of an `entity` answer."""
    return tuple(quote.text for quote in turn.quotes)


def scores_of(turn: Turn) -> dict[str, int]:
    """Return the scores of a `measure` answer, by dimension."""
    answer = json.loads(turn.reason)
    return {name: int(answer[name]) for name in DIMENSIONS}


def _read_score(fields: Mapping[str, Any], name: str) -> int:
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unparsed(f'"{name}" is not a whole number')
    if value not in ((1, 5) if name == "language" else (1, 2, 3, 4, 5)):
        allowed = "neither 1 nor 5" if name == "language" else "not from 1 to 5"
        raise OutOfRange(f'"{name}" is {allowed}')
    return value
