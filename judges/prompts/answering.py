"""The form of an answer in words, for judges whose API does not take a JSON schema.

Each such prompt is a separate version. Prompts in mode json_schema stay as they are.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from corpus.rubric import BY_QUERY, Rubric
from judges.prompts import render, searching, templates, writing
from judges.prompts.answers.formats import PairPreference, schema_of
from judges.records import DebateAgent, Inputs, Judge, ModelRequest, Prompt, Side

# The suffix of a prompt version's name, by schema mode.
FORMS = {"json_object": "words", "text": "words", "tool": "tool"}
# Schemas of answers, by the beginning of the prompt's name; the first match counts.
SCHEMAS: dict[str, dict[str, Any]] = {
    **{f"vote-0-{grades}": schema for grades, schema in render.GRADED_SCHEMAS.items()},
    **{f"vote-{name}": schema for name, schema in render.BASELINES.items()},
    "vote": render.VOTE_SCHEMA,
    "debate": render.TURN_SCHEMA,
    "adjudicate": render.VOTE_SCHEMA,
    "write": writing.WRITE_SCHEMA,
    "entity": writing.ENTITY_SCHEMA,
    "measure": writing.MEASURE_SCHEMA,
    **dict.fromkeys(searching.METHODS, searching.PASSAGE_SCHEMA),
    "reason": searching.REASONING_SCHEMA,
    "prefer": schema_of(PairPreference),
}


def fit_prompt(prompt: Prompt, judge: Judge, schema: dict[str, Any]) -> Prompt:
    """Return the prompt for this judge: with the answer's form in words, unless its API takes the schema.

    The system text moves into the user's message if the judge's chat template has no system message.
    """
    form = FORMS.get(judge.schema_mode, "")
    if judge.decides or not judge.preset.asks:
        return prompt
    if form and schema:
        words = describe_schema(schema, form)
        text, system = append_form(prompt.text, words), f"{prompt.system}\n\n{words}"
        prompt = render.make_prompt(f"{prompt.name}-{form}", text, system, prompt.user)
    if judge.merges_system and prompt.system:
        prompt = replace(prompt, system="", user=f"{prompt.system}\n\n{prompt.user}")
    return prompt


def build_request(
    judge: Judge, inputs: Inputs, role: str, *, history: render.History | None = None, sample: int = 0
) -> ModelRequest:
    """Build a question about a single pair: a vote, or a turn of the side that `role` names.

    A turn belongs to round 1, or with a `history` to round 2.
    """
    if role == "vote":
        (prompt, schema), round = render.render_ballot(inputs, judge), 0
    else:
        round = 1 if history is None else 2
        prompt, schema = render.turn_prompt(inputs, DebateAgent(Side(role)), round, history), render.TURN_SCHEMA
    prompt = fit_prompt(prompt, judge, schema)
    return ModelRequest(judge, prompt, schema, inputs, role, round=round, sample=sample, history=history)


def prompt_versions(rubric: Rubric = BY_QUERY, judges: Iterable[Judge] = ()) -> dict[str, tuple[str, str]]:
    """Return all prompt versions that these judges may see, by name: (sha256, text)."""
    forms = sorted({FORMS[judge.schema_mode] for judge in judges if judge.schema_mode in FORMS})
    return {
        **render.prompt_versions(rubric),
        **{name: version for form in forms for name, version in _in_form(rubric, form).items()},
    }


@lru_cache(maxsize=64)
def _in_form(rubric: Rubric, form: str) -> dict[str, tuple[str, str]]:
    texts = {}
    for name, (_, text) in render.prompt_versions(rubric).items():
        schema = next((schema for kind, schema in SCHEMAS.items() if name.startswith(kind)), None)
        if schema is None or name.endswith("-repair"):
            continue
        texts[f"{name}-{form}"] = append_form(text, describe_schema(schema, form))
    texts |= {f"{name}-repair": render.repair_version(text) for name, text in texts.items()}
    return {name: (render.sha256_of(text), text) for name, text in texts.items()}


def append_form(text: str, words: str) -> str:
    """Return a version's text with the form of its answer appended."""
    return f"{text}\n\n[answer]\n{words}"


def describe_schema(schema: dict[str, Any], form: str) -> str:
    """Describe a schema in words, key by key."""
    keys = "\n".join(
        f'- "{name}": {_describe_value(value_schema)}' for name, value_schema in schema["properties"].items()
    )
    return templates.render(f"answer-{form}", keys=keys)


def _describe_value(value_schema: dict[str, Any]) -> str:
    """Describe the type of a value in words, with its allowed values."""
    choices = value_schema.get("enum")
    if choices and value_schema["type"] == "string":
        return "exactly " + " or ".join(f'"{choice}"' for choice in choices)
    if choices and choices == list(range(choices[0], choices[-1] + 1)):
        return f"a whole number from {choices[0]} to {choices[-1]}, without quotation marks"
    if choices:
        return f"the number {' or '.join(map(str, choices))}, without quotation marks"
    return {"array": "a list of texts", "integer": "a whole number"}.get(value_schema["type"], "a text")
