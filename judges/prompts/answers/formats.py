"""Formats of the answers to each step of a conversation, as strict as those of verdicts (judges.domain.verdicts). Pure.

A format is a pydantic model, which gives the JSON schema for the request and validates the answer. The engine passes
answers on as a Turn whose verdict has no meaning and whose reason is the validated JSON object.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import ValidationError, field_validator

from judges.domain.verdicts import ParsingRules, Unparsed, check_string, read_object
from judges.prompts.answers import agents, synthesis
from judges.prompts.answers.base import AnswerFormat
from judges.records import Turn

# Keywords of JSON Schema that every provider's strict mode supports; bounds of numbers and lengths are only checked
# here.
_SUPPORTED = ("type", "enum", "items", "properties", "required", "additionalProperties", "anyOf")


class ContextAnswer(AnswerFormat):
    """An answer from the shown documents, or the sentence that they contain none (DREAM J)."""

    Answer: str

    @field_validator("Answer")
    @classmethod
    def check_answer(cls, value: str) -> str:
        """Reject a blank answer: a fixed sentence says that the documents contain no answer."""
        if not value.strip():
            raise ValueError("it is empty")
        return value


class Correctness(AnswerFormat):
    """Verdict on whether an answer says what one of the reference answers says (DREAM table 25)."""

    correct: bool


class PairPreference(AnswerFormat):
    """Which of two documents of a query is better, A or B; what decides it comes first."""

    reason: str
    preference: Literal["A", "B", "equal", "both bad"]


# Formats by role (judges.records.CONVERSATIONS).
FORMATS: dict[str, type[AnswerFormat]] = {
    "answer": ContextAnswer,
    "correct": Correctness,
    **synthesis.FORMATS,
    "search": agents.SearchTurn,
    "assess": agents.AnswerGrade,
    "reference": agents.ReferenceDraft,
    "prefer": PairPreference,
}


@cache
def schema_of(form: type[AnswerFormat]) -> dict[str, Any]:
    """Return the JSON schema for requests: without references, and with every property required."""
    schema = form.model_json_schema()
    return _plain_schema(schema, schema.get("$defs", {}))


def _plain_schema(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _plain_schema(definitions[node["$ref"].rpartition("/")[2]], definitions)
    plain = {key: node[key] for key in _SUPPORTED if key in node}
    if "const" in node:
        plain["enum"] = [node["const"]]
    if "properties" in plain:
        plain["properties"] = {name: _plain_schema(part, definitions) for name, part in plain["properties"].items()}
        plain |= {"required": list(plain["properties"]), "additionalProperties": False}
    if "items" in plain:
        plain["items"] = _plain_schema(plain["items"], definitions)
    if "anyOf" in plain:
        plain["anyOf"] = [_plain_schema(part, definitions) for part in plain["anyOf"]]
    return plain


def parse_answer(role: str, text: str, rules: ParsingRules, expected: Mapping[str, Any]) -> Turn:
    """Return a step's validated answer as a Turn. Raises Unparsed, in words that fit into a repair prompt."""
    answer_format, fields = FORMATS[role], read_object(text, rules)
    _check_texts(fields)
    if rules.ignore_extra_keys:
        fields = {name: value for name, value in fields.items() if name in answer_format.model_fields}
    try:
        answer = answer_format.model_validate(fields, context=dict(expected))
    except ValidationError as error:
        raise Unparsed(_describe_problem(error)) from error
    return Turn(1, answer.model_dump_json())


def _check_texts(value: object) -> None:
    """Raise Unparsed if the value contains a text that cannot be stored, at any depth."""
    if isinstance(value, str):
        check_string(value, "a text")
    elif isinstance(value, Mapping):
        for part in (*value, *value.values()):
            _check_texts(part)
    elif isinstance(value, list):
        for part in value:
            _check_texts(part)


def _describe_problem(error: ValidationError) -> str:
    """Describe the first problem without any words of the answer."""
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] == "extra_forbidden":
        return "it has keys that were not asked for"
    path = ".".join(map(str, problem["loc"]))
    if problem["type"] == "missing":
        return f'it lacks "{path}"'
    message = problem["msg"].removeprefix("Value error, ")
    return f'"{path}": {message}' if path else message
