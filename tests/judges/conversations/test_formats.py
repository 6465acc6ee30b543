"""Formats of conversations' answers: the schema that is sent, and what is taken for an answer. Pure."""

from typing import Literal

import pytest
from pydantic import Field, ValidationInfo, field_validator

from judges.domain.verdicts import STRICT, ParsingRules, Unparsed
from judges.prompts.answers import formats
from judges.prompts.answers.base import AnswerFormat
from judges.prompts.answers.formats import parse_answer, schema_of


class Part(AnswerFormat):
    name: str
    score: Literal[0, 0.5, 1]


class Whole(AnswerFormat):
    parts: list[Part] = Field(min_length=1)
    note: str | None
    quality: int = Field(ge=1, le=5)

    @field_validator("parts")
    @classmethod
    def every_name_occurs(cls, parts: list[Part], info: ValidationInfo) -> list[Part]:
        names = (info.context or {}).get("names")
        if names is not None and sorted(one.name for one in parts) != names:
            raise ValueError("it does not score every name once")
        return parts


GOOD = '{"parts": [{"name": "a1", "score": 0.5}], "note": null, "quality": 5}'


@pytest.fixture
def whole(monkeypatch):
    monkeypatch.setitem(formats.FORMATS, "assess", Whole)
    return lambda text, rules=STRICT, **expected: parse_answer("assess", text, rules, expected)


def test_the_schema_that_is_sent_has_no_references_and_requires_everything():
    assert schema_of(Whole) == {
        "type": "object",
        "properties": {
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "score": {"enum": [0, 0.5, 1]}},
                    "required": ["name", "score"],
                    "additionalProperties": False,
                },
            },
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "quality": {"type": "integer"},
        },
        "required": ["parts", "note", "quality"],
        "additionalProperties": False,
    }


def test_a_good_answer_is_kept_as_its_json_as_the_judges_version_allows(whole):
    turn = whole(GOOD, names=["a1"])
    assert Whole.model_validate_json(turn.reason).parts[0].score == 0.5
    whole("```json\n" + GOOD.replace("null", 'null, "stray": 1') + "\n```", ParsingRules("fence", False, True))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", 'it lacks "parts"'),
        ("[1]", "it was JSON, but not an object"),
        ("```json\n" + GOOD + "\n```", "it was not one JSON object and nothing else"),
        (GOOD.replace("0.5", "0.7"), '"parts.0.score": Input should be 0, 0.5 or 1'),
        (GOOD.replace('"quality": 5', '"quality": 6'), '"quality": Input should be less than or equal to 5'),
        (GOOD.replace('"quality": 5', '"quality": "5"'), '"quality": Input should be a valid integer'),
        (GOOD.replace("null", 'null, "stray words": 1'), "it has keys that were not asked for"),
        (GOOD.replace("a1", "a2"), '"parts": it does not score every name once'),
        (GOOD.replace("a1", "a\\u0000"), '"a text" holds characters that are not text'),
        ('{"note": null, "note": null}', "it has the same key twice"),
        ("", "it was empty"),
    ],
)
def test_anything_else_is_refused_in_our_own_words(whole, text, problem):
    with pytest.raises(Unparsed) as refused:
        whole(text, names=["a1"])
    assert str(refused.value) == problem
