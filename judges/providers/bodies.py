"""Putting a request's body together from what a judge wants and what its preset calls it."""

from typing import Any

from judges.presets.thinking import THINKING
from judges.records import Judge

TOOL = "answer"  # The one tool of mode `tool`: its arguments are the answer.
DESCRIPTION = "Gives the answer. Call it exactly once."
# Judge keys whose values go into a request as they are.
PLAIN = ("top_p", "seed", "stop", "reasoning_effort", "service_tier")


def add_parameters(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's parameters and its thinking, each under the preset's name for it."""
    # Temperature 0 unless the judge says another, or "default": then none is sent.
    given, preset = judge.parameters, judge.preset
    wanted = {"temperature": given.get("temperature", 0), "max_output_tokens": judge.max_output_tokens}
    wanted |= {key: given[key] for key in PLAIN if key in given}
    for key, value in wanted.items():
        if key in preset.names and not (key == "temperature" and value == "default"):
            *steps, last = preset.names[key].split(".")
            place = body
            for step in steps:
                place = place.setdefault(step, {})
            place[last] = value
    if preset.thinking and "thinking" in given:
        merge_fields(body, THINKING[preset.thinking](given["thinking"]))
    return body


def add_extra_body(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's `extra_body`, which goes before everything else."""
    return merge_fields(body, judge.parameters.get("extra_body", {}))


def merge_fields(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add fields, also to tables within tables."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(body.get(key), dict):
            merge_fields(body[key], value)
        else:
            body[key] = merge_fields({}, value) if isinstance(value, dict) else value
    return body
