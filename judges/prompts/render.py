"""The rendered messages of a turn, a vote and a repair.

Order of a message: what never changes (system), the collection's definition, the fenced material, then what changes
most. A provider's prompt cache can so keep the longest possible beginning.
"""

import json
from functools import cache
from hashlib import sha256
from typing import Any

from judges.prompts import templates
from judges.records import Inputs, Prompt, Side, Turn

DOCUMENT_LIMIT = 24_000
"""Characters of a document that a judge sees; the prompt says so where there were more."""
TEXT_LIMIT = 8_000
"""Characters of a title, query, answer, definition, reason or quotation that a judge sees."""

NAMES = {Side.FOR: "A", Side.AGAINST: "B"}
_RESPONSE = {"type": "string", "enum": ["yes", "no"]}

TURN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reference": {"type": "array", "items": {"type": "string"}},
        "reason": {"type": "string"},
        "response": _RESPONSE,
    },
    "required": ["reference", "reason", "response"],
    "additionalProperties": False,
}
# Strict modes want every property required, so the reason is asked for; the parser takes a vote without one.
VOTE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "response": _RESPONSE},
    "required": ["reason", "response"],
    "additionalProperties": False,
}

WRITING: dict[str, tuple[str, ...]] = {
    "write": ("write", "write-again"),
    "entity": ("entity",),
    "measure": ("measure",),
}
"""Prompts about contribution and evidence (judges.prompts.writing), and their templates."""


def turn_prompt(inputs: Inputs, side: Side, round: int, history: tuple[Turn, Turn] | None = None) -> Prompt:
    """One side's question in a round from 1. `history`: the turns (for, against) of the round before, from round 2 on.

    Raises ValueError when history is missing, or given in round 1 (DREAM 3.1: it replaces the stances).
    """
    if (round == 1) != (history is None) or round < 1:
        raise ValueError(f"Round {round} of a debate does not go with {'no ' if history is None else ''}history.")
    other = Side.AGAINST if side is Side.FOR else Side.FOR
    places = {"inputs": inputs_block(inputs), "own": NAMES[side], "other": NAMES[other]}
    if history is None:
        user = templates.render("debate-first", **places)
    else:
        told = fence(_history(history, side))
        user = templates.render("debate-later", history=told, round=str(round), previous=str(round - 1), **places)
    return _prompt("debate", inputs, user)


def vote_prompt(inputs: Inputs) -> Prompt:
    """One panel member's question, the same for every member."""
    return _prompt("vote", inputs, templates.render("vote", inputs=inputs_block(inputs)))


def repair_prompt(prompt: Prompt, problem: str) -> Prompt:
    """The same question once more, and what was wrong. `problem` is our own words, never the answer's."""
    name = prompt.name.removesuffix("-repair") + "-repair"
    user = templates.render("repair", request=prompt.user, problem=problem.strip().rstrip("."))
    return Prompt(name=name, sha256=versions()[name][0], system=prompt.system, user=user)


def inputs_block(inputs: Inputs) -> str:
    """What debate and vote show alike: the definition of relevance and the fenced query, answers and document."""
    definition = "This collection adds no definition of relevance of its own: the rules alone hold."
    if inputs.instruction.strip():
        told: dict[str, object] = {}
        _put(told, "definition", inputs.instruction, TEXT_LIMIT)
        definition = f"This collection defines relevance itself; where the rules differ, this goes first: {_json(told)}"
    return templates.render("inputs", definition=definition, data=fence(_material(inputs)))


def fence(content: str) -> str:
    """`content` between two lines that carry its hash, so that no content can hold its own closing line."""
    name = sha256(content.encode()).hexdigest()[:24]
    return f"<<<DATA {name}\n{content}\nDATA {name}>>>"


@cache
def versions() -> dict[str, tuple[str, str]]:
    """Every prompt version by name: (sha256 of the joined templates, their text)."""
    return {name: (sha256(text.encode()).hexdigest(), text) for name, text in _texts().items()}


def _texts() -> dict[str, str]:
    found = {}
    judging: dict[str, tuple[str, ...]] = {"debate": ("debate-first", "debate-later"), "vote": ("vote",)}
    for kind, names in judging.items():
        for form in ("answers", "plain"):
            parts = {"system": _system(kind, form), "inputs": templates.text("inputs")}
            parts |= {name: templates.text(name) for name in names}
            joined = "\n\n".join(f"[{name}]\n{text}" for name, text in parts.items())
            found[f"{kind}-{form}"] = joined
            found[f"{kind}-{form}-repair"] = f"{joined}\n\n[repair]\n{templates.text('repair')}"
    for kind, names in WRITING.items():
        used = (f"{kind}-system", *names, *(("inputs",) if kind != "entity" else ()))
        joined = "\n\n".join(f"[{name}]\n{templates.text(name)}" for name in used)
        found[kind] = joined
        found[f"{kind}-repair"] = f"{joined}\n\n[repair]\n{templates.text('repair')}"
    return found


@cache
def _system(kind: str, form: str) -> str:
    """The system message: nothing in it depends on the pair."""
    with_answers = " and every listed answer" if form == "answers" else ""
    return templates.render(f"{kind}-system", rubric=templates.text(f"rubric-{form}"), with_answers=with_answers)


def _prompt(kind: str, inputs: Inputs, user: str) -> Prompt:
    form = "answers" if inputs.answers else "plain"
    name = f"{kind}-{form}"
    return Prompt(name=name, sha256=versions()[name][0], system=_system(kind, form), user=user)


def _material(inputs: Inputs) -> str:
    """Query, answers, title and document as one JSON object with a line for each."""
    fields: dict[str, object] = {}
    _put(fields, "query", inputs.query, TEXT_LIMIT)
    for number, answer in enumerate(inputs.answers, 1):
        _put(fields, f"answer {number}", answer, TEXT_LIMIT)
    if inputs.title:
        _put(fields, "document title", inputs.title, TEXT_LIMIT)
    _put(fields, "document", inputs.document, DOCUMENT_LIMIT)
    return _json(fields)


def _history(history: tuple[Turn, Turn], side: Side) -> str:
    turns: dict[str, object] = {}
    for speaker, turn in zip((Side.FOR, Side.AGAINST), history, strict=True):
        told: dict[str, object] = {"own": speaker is side, "response": "yes" if turn.verdict else "no"}
        _put(told, "reason", turn.reason, TEXT_LIMIT)
        told["reference"] = [quote.text[:TEXT_LIMIT] for quote in turn.quotes]
        if any(len(quote.text) > TEXT_LIMIT for quote in turn.quotes):
            told["reference, note"] = f"cut: the first {TEXT_LIMIT} characters of each"
        turns[NAMES[speaker]] = told
    return _json(turns)


def _put(fields: dict[str, object], name: str, text: str, limit: int) -> None:
    """A text under its name, and where it was cut a line that says so."""
    fields[name] = text[:limit]
    if len(text) > limit:
        fields[f"{name}, note"] = f"cut: the first {limit} of {len(text)} characters"


def _json(fields: dict[str, object]) -> str:
    """Unicode as it is: only what JSON demands is escaped, so the text decodes to the same characters."""
    return json.dumps(fields, ensure_ascii=False, indent=0)
