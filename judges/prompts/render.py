"""Rendering of prompts: the messages of a turn, a vote and a repair, with the versions that they belong to.

The parts of a message are ordered by how often they change, so that a provider's prompt cache can reuse the longest
possible beginning (docs/adr/0047): the system message with the collection's definition of relevance, the query, which
all its documents share, the document, which all calls about the pair share, then the rest.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any

from corpus.document_limit import SHOWN
from corpus.rubric import BY_QUERY, QUERY, Definition, Rubric
from judges.domain.debate import PAIR
from judges.prompts import templates
from judges.records import SCALES, DebateAgent, Inputs, Judge, Prompt, Side, Turn

DOCUMENT_LIMIT = SHOWN  # Characters of a document that a judge sees; the prompt notes a cut.
TEXT_LIMIT = 8_000  # Characters of a title, query, answer, definition, reason or quotation that a judge sees.

History = Mapping[DebateAgent, Turn]  # The turns of a round.
NAMES = "ABCD"  # Names of a debate's agents, in their order.
NUMBERS = {2: "Two", 3: "Three", 4: "Four"}
STANCES = {
    Side.FOR: "yes, the document is relevant to the query",
    Side.AGAINST: "no, the document is not relevant to the query",
}
TEXT: dict[str, Any] = {"type": "string"}
_RESPONSE = {"type": "string", "enum": ["yes", "no"]}


def object_schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with these properties and no others."""
    # Strict modes want every property required, so a reason is required; the parser accepts a vote without one.
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TURN_SCHEMA = object_schema(reference={"type": "array", "items": TEXT}, reason=TEXT, response=_RESPONSE)
VOTE_SCHEMA = object_schema(reason=TEXT, response=_RESPONSE)
VERDICT_SCHEMA = object_schema(response=_RESPONSE)
# Schemas of graded votes, by the highest grade of the scale. The reason comes first.
GRADED_SCHEMAS = {
    grades: object_schema(reason=TEXT, score={"type": "integer", "enum": list(range(grades + 1))})
    for grades in SCALES.values()
    if grades > 1
}

# The papers' baselines of a vote, with their schemas: the definition's statement without its rules, and a verdict
# without a reason (DREAM table 17), or a chain of thought and a score between two anchors (ERank figure 5).
BASELINES = {"verdict-only": VERDICT_SCHEMA, "score-chain": GRADED_SCHEMAS[10]}

# Prompts about contribution and evidence of a pair (judges.prompts.writing), and their templates.
WRITING = {
    "write": ("write-system", "write", "write-again", "inputs"),
    "measure": ("measure-system", "measure", "inputs"),
}
# Prompts of runs (judges.prompts.searching), and their templates.
SEARCHING = {
    **{name: (f"{name}-system", name) for name in ("hyde", "query2doc", "mugi", "reason")},
    **{name: (name,) for name in ("rank", "embed", "web")},
}
# Steps of conversations, each with its own system message and the placeholder "data" (judges.prompts.conversations).
CONVERSATIONS: dict[str, tuple[str, ...]] = {
    name: (f"{name}-system", name)
    for name in (
        "rag-answer",
        "rag-correct",
        "synth-persona",
        "synth-classify",
        "synth-outline",
        "synth-decompose",
        "synth-blueprint",
        "synth-negatives",
        "synth-compose",
        "query-keywords",
        "query-ask",
        "agent-evidence",
        "agent-assess",
        "agent-reference",
    )
}
# Steps of an agent share their system message (judges.prompts.agents).
CONVERSATIONS |= {name: ("agent-system", name) for name in ("agent-search", "agent-answer")}
NO_PAIR = {
    "entity": ("entity-system", "entity"),
    **SEARCHING,
    **CONVERSATIONS,
}  # Prompts without a definition of relevance.

# Templates of the user message, by kind.
USERS = {
    "debate": ("debate-first", "debate-later"),
    "argue": ("argue-first", "argue-later"),
    "vote": ("vote",),
    "adjudicate": ("adjudicate",),
    "decision": ("decision",),
    "prefer": ("prefer",),
}
# Variants of each kind: by the number of agents, by the scale, by a paper's baseline.
VARIANTS = {
    "debate": ("", "-3", "-4"),
    "argue": ("", "-4"),
    "vote": ("", *(f"-0-{grades}" for grades in GRADED_SCHEMAS), *(f"-{name}" for name in BASELINES)),
    "adjudicate": ("",),
    "decision": tuple(f"-0-{grades}" for grades in SCALES.values()),
    "prefer": ("",),
}
# Key of the quotations that do not occur in the document.
NOT_FOUND = "not in the document"
# Takes the place of a query's own definition in a version's text: that definition is stored with the query.
ANYTHING = Definition(QUERY, "{{definition}}")


def turn_prompt(
    inputs: Inputs,
    speaker: DebateAgent,
    round: int,
    history: History | None = None,
    agents: Sequence[DebateAgent] = PAIR,
    *,
    gives_in: bool = True,
) -> Prompt:
    """Return the prompt of the agent `speaker` in a round, counted from 1.

    `history`: all turns of the previous round; it replaces the stances from round 2 on (DREAM 3.1). With `gives_in`
    false, the agent argues for its stance in every round, so that people hear both sides. Raises ValueError if
    `history` is missing in a later round, or present in round 1.
    """
    if (round == 1) != (history is None) or round < 1:
        raise ValueError(f"Round {round} of a debate does not go with {'no ' if history is None else ''}history.")
    names_by_agent = dict(zip(agents, NAMES, strict=False))
    other_names = [name for agent, name in names_by_agent.items() if agent != speaker]
    others_sentence = (
        f"The other assessor is {other_names[0]}."
        if len(other_names) == 1
        else f"The other assessors are {_join_names(other_names)}."
    )
    kind = "debate" if gives_in else "argue"
    values = {"inputs": inputs_block(inputs), "own": names_by_agent[speaker], "others": others_sentence}
    if history is None:
        stances = "\n".join(f"- {name} begins with: {STANCES[agent.side]}." for agent, name in names_by_agent.items())
        user = templates.render(f"{kind}-first", stances=stances, **values)
    else:
        if not gives_in:
            values["response"] = "yes" if speaker.side is Side.FOR else "no"
        history_block = delimit_content(_history_json(history, names_by_agent, speaker))
        user = templates.render(
            f"{kind}-later", history=history_block, round=str(round), previous=str(round - 1), **values
        )
    return _build_prompt(kind, inputs, user, "" if len(agents) == 2 else f"-{len(agents)}")


def vote_prompt(inputs: Inputs, grades: int = 1) -> Prompt:
    """Return the prompt of a vote, the same for all judges with this scale. `grades`: the highest grade."""
    user = templates.render("vote", inputs=inputs_block(inputs))
    return _build_prompt("vote", inputs, user, "" if grades == 1 else f"-0-{grades}")


def render_ballot(inputs: Inputs, judge: Judge) -> tuple[Prompt, dict[str, Any]]:
    """Return the prompt of a judge's vote and the schema of the answer, by the judge's ballot, scale and endpoint."""
    if judge.ballot in BASELINES:
        user = templates.render("vote", inputs=inputs_block(inputs))
        return _build_prompt("vote", inputs, user, f"-{judge.ballot}"), BASELINES[judge.ballot]
    schema = VOTE_SCHEMA if judge.grades == 1 else GRADED_SCHEMAS[judge.grades]
    return (decision_prompt if judge.decides else vote_prompt)(inputs, judge.grades), schema


def decision_prompt(inputs: Inputs, grades: int) -> Prompt:
    """Return the prompt of a vote for a Decisions endpoint, which gives a probability for each grade."""
    user = templates.render("decision", inputs=inputs_block(inputs))
    return _build_prompt("decision", inputs, user, f"-0-{grades}")


def prefer_prompt(first: Inputs, second: Inputs) -> Prompt:
    """Return the prompt that asks which of two documents of a query is better: A, the first one, or B."""
    documents = {"first": document_block(first), "second": document_block(second)}
    return _build_prompt("prefer", first, templates.render("prefer", query=query_block(first), **documents))


def grade_levels(grades: int) -> tuple[str, ...]:
    """Return the meaning of each grade of a scale, from 0 on."""
    return tuple(line.partition(": ")[2] for line in templates.text(f"scale-{grades}").splitlines())


@cache
def relevant_grade(grades: int) -> int:
    """Return the lowest grade of a scale whose meaning includes that the document is relevant."""
    return next(grade for grade, meaning in enumerate(grade_levels(grades)) if "the document is relevant" in meaning)


def adjudicate_prompt(
    inputs: Inputs, last_turns: Mapping[DebateAgent, Turn], agents: Sequence[DebateAgent] = PAIR
) -> Prompt:
    """Return the adjudicator's prompt: the pair and the turns of the last round (DREAM A.3)."""
    history_block = delimit_content(_history_json(last_turns, dict(zip(agents, NAMES, strict=False))))
    user = templates.render("adjudicate", inputs=inputs_block(inputs), history=history_block)
    return _build_prompt("adjudicate", inputs, user)


def repair_prompt(prompt: Prompt, problem: str) -> Prompt:
    """Return the question again, with the problem of the first answer. `problem`: in our words, never the answer's."""
    user = templates.render("repair", request=prompt.user, problem=problem.strip().rstrip("."))
    if prompt.name.endswith("-repair"):
        return replace(prompt, user=user)
    return make_prompt(f"{prompt.name}-repair", repair_version(prompt.text), prompt.system, user)


def make_prompt(name: str, text: str, system: str, user: str) -> Prompt:
    """Return the messages with the hash of their version. `text`: the version's text."""
    return Prompt(name=name, sha256=sha256_of(text), system=system, user=user, text=text)


def make_general_prompt(name: str, system: str, user: str) -> Prompt:
    """Return the messages of a prompt without a definition of relevance."""
    return make_prompt(name, prompt_versions()[name][1], system, user)


def step_prompt(name: str, *data: dict[str, Any], **values: str) -> Prompt:
    """Return a step's prompt: the system message named after it, and its data as JSON, each part in a fence."""
    user = templates.render(name, data="\n\n".join(delimit_content(dump_json(part)) for part in data), **values)
    return make_general_prompt(name, templates.text(f"{name}-system"), user)


def render_definition(definition: Definition) -> str:
    """Return a prompt's sentence on what relevant means: a rubric verbatim, a user's own words as a JSON string."""
    if not definition.is_own:
        return f"What relevant means here: {definition.text}"
    field = truncated_field("definition", definition.statement, TEXT_LIMIT)
    return f"What relevant means here, in the words of whoever set the task, as JSON: {dump_json(field)}"


def inputs_block(inputs: Inputs) -> str:
    """Return the part that debate and vote share: the query with its answers, and the document, each in a fence."""
    return templates.render("inputs", query=query_block(inputs), document=document_block(inputs))


def query_block(inputs: Inputs) -> str:
    """Return the query with its answers in a fence."""
    query_fields = truncated_field("query", inputs.query, TEXT_LIMIT)
    for number, answer in enumerate(inputs.answers, 1):
        query_fields |= truncated_field(f"answer {number}", answer, TEXT_LIMIT)
    # A fence is named by its content. One name for both fences would change with every document, and a cache could
    # no longer reuse the beginning.
    return delimit_content(dump_json(query_fields))


def document_block(inputs: Inputs) -> str:
    """Return the document, or the window of it, in a fence."""
    title = truncated_field("document title", inputs.title, TEXT_LIMIT) if inputs.title else {}
    document_fields = title | truncated_field("document", inputs.document, inputs.shown)
    if (window := inputs.window) is not None:
        # The note includes the position, so that an equal part of another document is another question to the cache.
        position = f"characters {window.start + 1} to {window.end} of {window.length}"
        document_fields["document, note"] = f"part {window.number} of {window.count}: {position}"
    return delimit_content(dump_json(document_fields))


def block_ends(user: str, max_blocks: int | None = None) -> list[int]:
    """Return the ends of a user message's first fenced blocks: up to there, other calls share its text (caching)."""
    return [match.end() for match in islice(_FENCE.finditer(user), max_blocks)]


_FENCE = re.compile(r"^<<<DATA ([0-9a-f]{24})$\n.*?\n^DATA \1>>>$", re.DOTALL | re.MULTILINE)


def delimit_content(content: str) -> str:
    """Return `content` between two lines with its hash, so that no content can contain its own closing line."""
    name = sha256(content.encode()).hexdigest()[:24]
    return f"<<<DATA {name}\n{content}\nDATA {name}>>>"


@lru_cache(maxsize=256)
def prompt_versions(rubric: Rubric = BY_QUERY) -> dict[str, tuple[str, str]]:
    """Return the prompt versions of a collection with this rubric, by name: (sha256 of the text, the text)."""
    texts = {}
    # The rubric's definitions for queries with and without answers, then the queries with a definition of their own.
    definitions = [("answers", rubric.definition(answers=True)), ("plain", rubric.definition(answers=False))]
    for form, definition in [*definitions, ("answers", ANYTHING), ("plain", ANYTHING)]:
        for kind, variants in VARIANTS.items():
            for variant in variants:
                texts[version_name(kind, variant, form, definition)] = _version_text(kind, variant, form, definition)
        for kind in WRITING:
            texts[version_name(kind, "", form, definition)] = writing_version(kind, form, definition)
    for name, parts in NO_PAIR.items():
        texts[name] = _join_parts(name, {part: templates.text(part) for part in parts})
    texts |= {f"{name}-repair": repair_version(text) for name, text in texts.items()}
    return {name: (sha256_of(text), text) for name, text in texts.items()}


def version_name(kind: str, variant: str, form: str, definition: Definition) -> str:
    """Name a prompt version by its kind, whether answers are listed, and whether the query defines relevance itself."""
    return f"{kind}{variant}-{form}{'-own' if definition.name == QUERY else ''}"


@lru_cache(maxsize=1024)
def _version_text(kind: str, variant: str, form: str, definition: Definition) -> str:
    parts = {"system": _system_message(kind, variant, form, definition)}
    if kind != "prefer":  # it shows two documents in a message of its own
        parts["inputs"] = templates.text("inputs")
    if kind == "decision":
        parts["levels"] = templates.text(f"scale-{variant.rpartition('-')[2]}")
    parts |= {user: templates.text(user) for user in USERS[kind]}
    return _join_parts(version_name(kind, variant, form, definition), parts)


@lru_cache(maxsize=256)
def writing_version(kind: str, form: str, definition: Definition) -> str:
    """Return the text of a version of `write` or `measure`."""
    parts = {"definition": render_statement(definition)} | {part: templates.text(part) for part in WRITING[kind]}
    return _join_parts(version_name(kind, "", form, definition), parts)


def render_statement(definition: Definition) -> str:
    """Return the definition without its rules, for prompts that do not ask for a verdict."""
    return render_definition(replace(definition, rules=()))


def _join_parts(name: str, parts: Mapping[str, str]) -> str:
    return "\n\n".join(f"[{name}: {part}]\n{text}" for part, text in parts.items())


@lru_cache(maxsize=4096)
def repair_version(text: str) -> str:
    """Return the text of the version that asks for a repaired answer to this one."""
    return f"{text}\n\n[repair]\n{templates.text('repair')}"


@lru_cache(maxsize=4096)
def sha256_of(text: str) -> str:
    """Return the hash of a version's text."""
    return sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1024)
def _system_message(kind: str, variant: str, form: str, definition: Definition) -> str:
    """Return the system message, which does not depend on the pair."""
    values = {
        "definition": render_definition(definition),
        "with_answers": " and every listed answer" if form == "answers" else "",
    }
    if variant[1:] in BASELINES:
        return templates.render(f"{variant[1:]}-system", **values | {"definition": render_statement(definition)})
    if kind in ("debate", "argue"):
        agents = int(variant[-1]) if variant[-1:].isdigit() else 2
        values["assessors"] = f"{NUMBERS[agents]} assessors, {_join_names(NAMES[:agents])},"
    elif kind == "vote" and variant:
        highest = variant.rpartition("-")[2]
        return templates.render("graded-system", scale=templates.text(f"scale-{highest}"), highest=highest, **values)
    return templates.render(f"{kind}-system", **values)


def _build_prompt(kind: str, inputs: Inputs, user: str, variant: str = "") -> Prompt:
    definition, form = inputs.relevance, form_of(inputs)
    system = _system_message(kind, variant, form, definition)
    version = _version_text(kind, variant, form, stored_definition(definition))
    return make_prompt(version_name(kind, variant, form, definition), version, system, user)


def form_of(inputs: Inputs) -> str:
    """Return the form of a pair's prompts: queries without answers have separate versions."""
    return "answers" if inputs.answers else "plain"


def stored_definition(definition: Definition) -> Definition:
    """Return the definition as it appears in a version's text."""
    return ANYTHING if definition.name == QUERY else definition


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _history_json(history: History, names: Mapping[DebateAgent, str], reader: DebateAgent | None = None) -> str:
    turns: dict[str, object] = {}
    for agent, name in names.items():
        turn = history[agent]
        fields: dict[str, object] = {} if reader is None else {"own": agent == reader}
        fields["response"] = "yes" if turn.verdict else "no"
        fields |= truncated_field("reason", turn.reason, TEXT_LIMIT)
        fields["reference"] = [quote.text[:TEXT_LIMIT] for quote in turn.quotes if quote.start is not None]
        if unverified_quotes := [quote.text[:TEXT_LIMIT] for quote in turn.quotes if quote.start is None]:
            fields[NOT_FOUND] = unverified_quotes
        if any(len(quote.text) > TEXT_LIMIT for quote in turn.quotes):
            fields["reference, note"] = f"cut: the first {TEXT_LIMIT} characters of each"
        turns[name] = fields
    return dump_json(turns)


def truncated_field(name: str, text: str, limit: int) -> dict[str, object]:
    """Return a text under its name and, if it was cut, a note that says so."""
    note = {f"{name}, note": f"cut: the first {limit} of {len(text)} characters"} if len(text) > limit else {}
    return {name: text[:limit], **note}


def dump_json(fields: dict[str, object]) -> str:
    """Return the fields as JSON, a line for each, without escapes for characters beyond ASCII."""
    return json.dumps(fields, ensure_ascii=False, indent=0)
