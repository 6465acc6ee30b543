"""The rendered messages of a turn, a vote and a repair.

Order of a message: what never changes (system), the collection's definition, the fenced material, then what changes
most. A provider's prompt cache can so keep the longest possible beginning.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from judges.debate import PAIR
from judges.prompts import templates
from judges.records import SCALES, Inputs, Judge, Prompt, Seat, Side, Turn

DOCUMENT_LIMIT = 24_000
"""Characters of a document that a judge sees; the prompt says so where there were more."""
TEXT_LIMIT = 8_000
"""Characters of a title, query, answer, definition, reason or quotation that a judge sees."""

NAMES = "ABCD"
"""Of a debate's agents, by their place among the seats."""
NUMBERS = {2: "Two", 3: "Three", 4: "Four"}
STANCES = {
    Side.FOR: "yes, the document is relevant to the query",
    Side.AGAINST: "no, the document is not relevant to the query",
}
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

GRADED_SCHEMAS: dict[int, dict[str, Any]] = {
    grades: {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": {"type": "integer", "enum": list(range(grades + 1))}},
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    for grades in SCALES.values()
    if grades > 1
}
"""Of a judge with a scale of its own, by its highest grade. The reason comes first: the score follows from it."""

WRITING: dict[str, tuple[str, ...]] = {
    "write": ("write", "write-again"),
    "entity": ("entity",),
    "measure": ("measure",),
}
"""Prompts about contribution and evidence (judges.prompts.writing), and their templates."""
SEARCHING = {
    **{name: (f"{name}-system", name) for name in ("hyde", "query2doc", "mugi", "reason")},
    **{name: (name,) for name in ("rank", "embed")},
}
"""What runs ask (judges.prompts.searching), and the templates of it."""

USERS = {
    "debate": ("debate-first", "debate-later"),
    "vote": ("vote",),
    "adjudicate": ("adjudicate",),
    "decision": ("decision",),
}
"""Templates of the user message, by kind."""
VARIANTS = {
    "debate": ("", "-3", "-4"),
    "vote": ("", *(f"-0-{grades}" for grades in GRADED_SCHEMAS)),
    "adjudicate": ("",),
    "decision": tuple(f"-0-{grades}" for grades in SCALES.values()),
}
"""What else makes another prompt: the number of agents; the scale."""


def turn_prompt(
    inputs: Inputs,
    seat: Seat,
    round: int,
    history: Mapping[Seat, Turn] | None = None,
    agents: Sequence[Seat] = PAIR,
) -> Prompt:
    """One agent's question in a round from 1. `history`: all turns of the round before, from round 2 on.

    Raises ValueError when history is missing, or given in round 1 (DREAM 3.1: it replaces the stances).
    """
    if (round == 1) != (history is None) or round < 1:
        raise ValueError(f"Round {round} of a debate does not go with {'no ' if history is None else ''}history.")
    named = dict(zip(agents, NAMES, strict=False))
    places = {"inputs": inputs_block(inputs), "own": named[seat], "others": _others(named, seat)}
    if history is None:
        stances = "\n".join(f"- {name} begins with: {STANCES[agent.side]}." for agent, name in named.items())
        user = templates.render("debate-first", stances=stances, **places)
    else:
        told = fence(_history(history, named, seat))
        user = templates.render("debate-later", history=told, round=str(round), previous=str(round - 1), **places)
    return _prompt("debate", inputs, user, _many(agents))


def vote_prompt(inputs: Inputs, grades: int = 1) -> Prompt:
    """One panel member's question, the same for every member with the same scale; `grades` is its highest grade."""
    user = templates.render("vote", inputs=inputs_block(inputs))
    return _prompt("vote", inputs, user, "" if grades == 1 else f"-0-{grades}")


def ballot(inputs: Inputs, judge: Judge) -> tuple[Prompt, dict[str, Any]]:
    """What a judge is asked for its vote, and the schema of the answer: by its scale and endpoint."""
    schema = VOTE_SCHEMA if judge.grades == 1 else GRADED_SCHEMAS[judge.grades]
    return (decision_prompt if judge.decides else vote_prompt)(inputs, judge.grades), schema


def decision_prompt(inputs: Inputs, grades: int) -> Prompt:
    """The same question to an endpoint that gives a probability for each of `levels(grades)`."""
    user = templates.render("decision", inputs=inputs_block(inputs))
    return _prompt("decision", inputs, user, f"-0-{grades}")


def levels(grades: int) -> tuple[str, ...]:
    """What each grade of a scale means, from 0 on."""
    return tuple(line.partition(": ")[2] for line in templates.text(f"scale-{grades}").splitlines())


def adjudicate_prompt(inputs: Inputs, last: Mapping[Seat, Turn], agents: Sequence[Seat] = PAIR) -> Prompt:
    """The adjudicator's question: the same material, and the turns of the last round (DREAM A.3)."""
    told = fence(_history(last, dict(zip(agents, NAMES, strict=False))))
    return _prompt("adjudicate", inputs, templates.render("adjudicate", inputs=inputs_block(inputs), history=told))


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
    for kind, variants in VARIANTS.items():
        for variant in variants:
            for form in ("answers", "plain"):
                name = f"{kind}{variant}-{form}"
                parts = {"system": _system(kind, variant, form), "inputs": templates.text("inputs")}
                if kind == "decision":
                    parts["levels"] = templates.text(f"scale-{variant.rpartition('-')[2]}")
                parts |= {user: templates.text(user) for user in USERS[kind]}
                joined = "\n\n".join(f"[{name}]\n{text}" for name, text in parts.items())
                found[name] = joined
                found[f"{name}-repair"] = f"{joined}\n\n[repair]\n{templates.text('repair')}"
    for kind, names in WRITING.items():
        used = (f"{kind}-system", *names, *(("inputs",) if kind != "entity" else ()))
        joined = "\n\n".join(f"[{name}]\n{templates.text(name)}" for name in used)
        found[kind] = joined
        found[f"{kind}-repair"] = f"{joined}\n\n[repair]\n{templates.text('repair')}"
    for kind, names in SEARCHING.items():
        found[kind] = "\n\n".join(f"[{name}]\n{templates.text(name)}" for name in names)
        found[f"{kind}-repair"] = f"{found[kind]}\n\n[repair]\n{templates.text('repair')}"
    return found


@cache
def _system(kind: str, variant: str, form: str) -> str:
    """The system message: nothing in it depends on the pair."""
    places = {
        "rubric": templates.text(f"rubric-{form}"),
        "with_answers": " and every listed answer" if form == "answers" else "",
    }
    if kind == "debate":
        agents = int(variant[-1]) if variant[-1:].isdigit() else 2
        places["assessors"] = f"{NUMBERS[agents]} assessors, {_list(NAMES[:agents])},"
    elif kind == "vote" and variant:
        highest = variant.rpartition("-")[2]
        return templates.render("graded-system", scale=templates.text(f"scale-{highest}"), highest=highest, **places)
    return templates.render(f"{kind}-system", **places)


def _prompt(kind: str, inputs: Inputs, user: str, variant: str = "") -> Prompt:
    form = "answers" if inputs.answers else "plain"
    name = f"{kind}{variant}-{form}"
    return Prompt(name=name, sha256=versions()[name][0], system=_system(kind, variant, form), user=user)


def _many(agents: Sequence[Seat]) -> str:
    return "" if len(agents) == 2 else f"-{len(agents)}"


def _others(named: Mapping[Seat, str], own: Seat) -> str:
    others = [name for seat, name in named.items() if seat != own]
    return f"The other assessor is {others[0]}." if len(others) == 1 else f"The other assessors are {_list(others)}."


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


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


def _history(history: Mapping[Seat, Turn], named: Mapping[Seat, str], own: Seat | None = None) -> str:
    turns: dict[str, object] = {}
    for seat, name in named.items():
        turn = history[seat]
        told: dict[str, object] = {} if own is None else {"own": seat == own}
        told["response"] = "yes" if turn.verdict else "no"
        _put(told, "reason", turn.reason, TEXT_LIMIT)
        told["reference"] = [quote.text[:TEXT_LIMIT] for quote in turn.quotes]
        if any(len(quote.text) > TEXT_LIMIT for quote in turn.quotes):
            told["reference, note"] = f"cut: the first {TEXT_LIMIT} characters of each"
        turns[name] = told
    return _json(turns)


def _put(fields: dict[str, object], name: str, text: str, limit: int) -> None:
    """A text under its name, and where it was cut a line that says so."""
    fields[name] = text[:limit]
    if len(text) > limit:
        fields[f"{name}, note"] = f"cut: the first {limit} of {len(text)} characters"


def _json(fields: dict[str, object]) -> str:
    """Unicode as it is: only what JSON demands is escaped, so the text decodes to the same characters."""
    return json.dumps(fields, ensure_ascii=False, indent=0)
