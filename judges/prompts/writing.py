"""Prompts about contribution and evidence: to write them, list their entities and measure them.

The answers of a query are not shown: evidence reports what the document says, and nothing that only an answer knows.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

from corpus.evidence.measures import DIMENSIONS, EvidenceTarget
from judges.prompts import templates
from judges.prompts.render import (
    TEXT,
    TEXT_LIMIT,
    delimit_content,
    dump_json,
    form_of,
    inputs_block,
    make_prompt,
    object_schema,
    render_statement,
    step_prompt,
    stored_definition,
    version_name,
    writing_version,
)
from judges.records import Inputs, Prompt

SCORES = [1, 2, 3, 4, 5]
WRITE_SCHEMA = object_schema(contribution=TEXT, evidence=TEXT)
ENTITY_SCHEMA = object_schema(entities={"type": "array", "items": TEXT})
MEASURE_SCHEMA = object_schema(
    note=TEXT, **{name: {"type": "integer", "enum": [1, 5] if name == "language" else SCORES} for name in DIMENSIONS}
)


def write_prompt(inputs: Inputs, earlier: EvidenceTarget | None = None, problems: Sequence[str] = ()) -> Prompt:
    """Return the writer's prompt; with `problems`, that of its second try, which shows them and the `earlier` text."""
    if not problems:
        return _build_prompt("write", inputs, "write")
    feedback = {**(asdict(earlier) if earlier else {}), "wrong": list(problems)}
    return _build_prompt("write", inputs, "write-again", earlier=delimit_content(dump_json(feedback)))


def entity_prompt(evidence: str) -> Prompt:
    """Return the prompt for the names and terms in the evidence (Prism 5.3); a pass with patterns finds others."""
    return step_prompt("entity", {"text": evidence[:TEXT_LIMIT]})


def measure_prompt(inputs: Inputs, target: EvidenceTarget) -> Prompt:
    """Return the prompt for scores in all six dimensions by a single call (Prism 5.3)."""
    return _build_prompt("measure", inputs, "measure", written=delimit_content(dump_json(asdict(target))))


def _build_prompt(kind: str, inputs: Inputs, template: str, **values: str) -> Prompt:
    """Build a prompt about a pair: the definition of relevance, and the inputs without the answers."""
    definition, form = inputs.relevance, form_of(inputs)
    material = inputs_block(replace(inputs, answers=()))
    user = templates.render(template, definition=render_statement(definition), inputs=material, **values)
    version = writing_version(kind, form, stored_definition(definition))
    return make_prompt(version_name(kind, "", form, definition), version, templates.text(f"{kind}-system"), user)
