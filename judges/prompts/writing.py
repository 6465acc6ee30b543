"""What judges are asked about contribution and evidence: write them, list their entities, measure them (SPEC S6).

The answers of a query are not shown: evidence says what the document says, and nothing that only an answer knows.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corpus.evidence import Target
from judges.prompts import templates
from judges.prompts.render import TEXT_LIMIT, fence, inputs_block, versions
from judges.quality import DIMENSIONS
from judges.records import Inputs, Prompt

SCORES = [1, 2, 3, 4, 5]
WRITE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"contribution": {"type": "string"}, "evidence": {"type": "string"}},
    "required": ["contribution", "evidence"],
    "additionalProperties": False,
}
ENTITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"entities": {"type": "array", "items": {"type": "string"}}},
    "required": ["entities"],
    "additionalProperties": False,
}
MEASURE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        **{name: {"type": "integer", "enum": [1, 5] if name == "language" else SCORES} for name in DIMENSIONS},
    },
    "required": ["note", *DIMENSIONS],
    "additionalProperties": False,
}


def write_prompt(inputs: Inputs, earlier: Target | None = None, problems: Sequence[str] = ()) -> Prompt:
    """The writer's question; with `problems` its second try, which is told what was wrong with the first."""
    material = inputs_block(replace(inputs, answers=()))
    if not problems:
        return _prompt("write", templates.render("write", inputs=material))
    told = {**(_fields(earlier) if earlier else {}), "wrong": list(problems)}
    return _prompt("write", templates.render("write-again", inputs=material, earlier=fence(_json(told))))


def entity_prompt(evidence: str) -> Prompt:
    """Which names and terms stand in the evidence: the model's pass (P 5.3); patterns are the other."""
    return _prompt("entity", templates.render("entity", data=fence(_json({"text": evidence[:TEXT_LIMIT]}))))


def measure_prompt(inputs: Inputs, target: Target) -> Prompt:
    """Six dimensions in a single call (P 5.3)."""
    material = inputs_block(replace(inputs, answers=()))
    return _prompt("measure", templates.render("measure", inputs=material, written=fence(_json(_fields(target)))))


def _prompt(name: str, user: str) -> Prompt:
    return Prompt(name=name, sha256=versions()[name][0], system=templates.text(f"{name}-system"), user=user)


def _fields(target: Target) -> dict[str, object]:
    return {"contribution": target.contribution, "evidence": target.evidence}


def _json(fields: dict[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, indent=0)
