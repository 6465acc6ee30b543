"""The context length in what a server tells of itself."""

import re
from typing import Any

from judges.presets.record import Context

STEP = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")


def context_length(context: Context, told: object, model: str) -> int | None:
    """Tokens that a request to the model and its answer may have together; None where `told` does not say."""
    for path in context.at:
        found = told
        for step in path.split("."):
            found = _step(found, step, model)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None


def _step(found: object, step: str, model: str) -> object:
    parts = STEP.fullmatch(step)
    if parts is None or not isinstance(found, dict):
        return None
    value = found.get(parts[1])
    return value if parts[2] is None else _find_model(value, parts[2], model)


def _find_model(listed: object, key: str, model: str) -> Any:
    """The list's entry for the model, or its only one: servers of one model name it as they like."""
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    named = [one for one in entries if one.get(key) == model]
    return (named or entries)[0] if named or len(entries) == 1 else None
