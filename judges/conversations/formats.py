"""Formats of the answers to each step of a conversation, as strict as verdicts (judges.domain.verdicts). Pure.

A format is a pydantic model: it makes the JSON schema that is sent, and checks what comes back.
Answers travel through the engine as a Turn whose verdict says nothing and whose reason is the
checked JSON object.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError, field_validator

from judges.conversations import agents, synthesis
from judges.conversations.base import AnswerFormat
from judges.domain.verdicts import ParsingRules, Unparsed, check_string, read_object
from judges.records import Turn

# What of a JSON schema every provider's strict mode takes; bounds of numbers and lengths are checked here alone.
_KEPT = ("type", "enum", "items", "properties", "required", "additionalProperties", "anyOf")


class ContextAnswer(AnswerFormat):
    """An answer from the shown documents, or the sentence that they hold none (DREAM J)."""

    Answer: str

    @field_validator("Answer")
    @classmethod
    def check_answer(cls, value: str) -> str:
        """Refuse an answer without a word: what is not there has a sentence of its own."""
        if not value.strip():
            raise ValueError("it is empty")
        return value


class Correctness(AnswerFormat):
    """Verdict on whether an answer says what one of the reference answers says (DREAM table 25)."""

    correct: bool


# By role (judges.records.CONVERSATIONS).
FORMATS: dict[str, type[AnswerFormat]] = {
    "answer": ContextAnswer,
    "correct": Correctness,
    **synthesis.FORMATS,
    "search": agents.SearchTurn,
    "assess": agents.AnswerGrade,
    "reference": agents.ReferenceDraft,
}


@cache
def schema_of(form: type[AnswerFormat]) -> dict[str, Any]:
    """Return the JSON schema that is sent: without references, every property required."""
    schema = form.model_json_schema()
    return _plain_schema(schema, schema.get("$defs", {}))


def _plain_schema(node: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _plain_schema(named[node["$ref"].rpartition("/")[2]], named)
    kept = {key: node[key] for key in _KEPT if key in node}
    if "const" in node:
        kept["enum"] = [node["const"]]
    if "properties" in kept:
        kept["properties"] = {name: _plain_schema(one, named) for name, one in kept["properties"].items()}
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    if "items" in kept:
        kept["items"] = _plain_schema(kept["items"], named)
    if "anyOf" in kept:
        kept["anyOf"] = [_plain_schema(one, named) for one in kept["anyOf"]]
    return kept


def parse_answer(role: str, text: str, rules: ParsingRules, expected: Mapping[str, Any]) -> Turn:
    """Return a step's checked answer as a Turn. Unparsed, in words fit for a repair."""
    form, found = FORMATS[role], read_object(text, rules)
    _check_texts(found)
    if rules.ignore_extra_keys:
        found = {name: value for name, value in found.items() if name in form.model_fields}
    try:
        answer = form.model_validate(found, context=dict(expected))
    except ValidationError as error:
        raise Unparsed(_describe_problem(error)) from error
    return Turn(1, answer.model_dump_json())


def _check_texts(value: object) -> None:
    """Refuse texts that cannot be stored, wherever they stand. Raises Unparsed."""
    if isinstance(value, str):
        check_string(value, "a text")
    elif isinstance(value, Mapping):
        for one in (*value, *value.values()):
            _check_texts(one)
    elif isinstance(value, list):
        for one in value:
            _check_texts(one)


def _describe_problem(error: ValidationError) -> str:
    """Return the first thing that is wrong, without a word of the answer."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "extra_forbidden":
        return "it has keys that were not asked for"
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f'it lacks "{where}"'
    what = first["msg"].removeprefix("Value error, ")
    return f'"{where}": {what}' if where else what
