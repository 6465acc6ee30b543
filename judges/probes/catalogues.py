"""Catalogues that providers give away: names of their models, and how many tokens the judge's own can hold.

Nothing here may fail a check: an address that is not there, or an answer of another form, tells nothing.
"""

import re
from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from urllib.parse import urljoin

from judges.presets import Context
from judges.providers import open_provider
from judges.providers.base import SdkProvider
from judges.providers.replies import get_list
from judges.records import Judge

# Where a provider lists its models, beside the base URL, by wire.
LISTS = {
    "chat": "models",
    "responses": "models",
    "messages": "v1/models?limit=1000",
    "generate": "v1beta/models?pageSize=1000",
}
VERSIONS = {"messages": {"anthropic-version": "2023-06-01"}}
NAMES = ("id", "name", "model", "model_name", "model_id")
# Where the length of a context stands in an entry of such a list, whoever writes it.
ROOM = (
    *("max_model_len", "context_length", "context_window"),
    *("max_context_length", "max_input_tokens", "inputTokenLimit"),
)
# Where the day stands from which a model answers no more: OpenAI's, OpenRouter's, Mistral's and others' words.
ENDS = (
    *("shutdown_date", "shutdown_at", "expiration_date", "retirement_date", "deprecation_date", "deprecation"),
    *("retires_at", "end_of_life", "sunset_date"),
)
STEP = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")  # A step of a dotted path (judges.presets.record.Context).


class Catalogue(NamedTuple):
    """What a provider tells for nothing. `context`: tokens of the judge's model; `ends`: its last day, where told."""

    names: tuple[str, ...] = ()
    context: int | None = None
    ends: date | None = None


async def look_up(judge: Judge) -> Catalogue:
    """Return the names of all models, and what is told of the judge's own."""
    preset, provider = judge.preset, open_provider(judge)
    if not preset.asks or preset.client or not isinstance(provider, SdkProvider):
        return Catalogue()
    base = provider.base_url.rstrip("/") + "/"
    told = await provider.look_up(urljoin(base, LISTS[preset.wire]), VERSIONS.get(preset.wire, {}))
    entries = told if isinstance(told, list) else [*get_list(told, "data"), *get_list(told, "models")]
    listed = [entry for entry in entries if isinstance(entry, dict)]
    model = judge.model.removeprefix("models/")
    entry = next((one for one in listed if model in _model_names(one)), {})
    context = next((one for one in map(entry.get, ROOM) if isinstance(one, int) and one > 1), None)
    if preset.context is not None:
        own = await provider.look_up(urljoin(base, preset.context.path), {})
        context = context_length(preset.context, own, judge.model) or context
    names = dict.fromkeys(name for one in listed for name in _model_names(one))
    return Catalogue(tuple(names), context, next(filter(None, map(parse_day, map(entry.get, ENDS))), None))


def _model_names(entry: dict[str, Any]) -> list[str]:
    """Return the names of a model, the one that a request has first."""
    found = [entry.get(key) for key in NAMES]
    return [name.removeprefix("models/") for name in found if isinstance(name, str) and name][:1]


def parse_day(value: object) -> date | None:
    """Return the day of a date as text or of seconds since 1970; None for anything else."""
    try:
        if isinstance(value, str):
            return date.fromisoformat(value[:10])
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC).date()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def context_length(context: Context, told: object, model: str) -> int | None:
    """Return tokens that a request to the model and its answer may have together; None where `told` does not say."""
    for path in context.at:
        found = told
        for step in path.split("."):
            found = _follow_step(found, step, model)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None


def _follow_step(found: object, step: str, model: str) -> object:
    """Return the value under the step's key; of "data[id]" the list's entry for the model, or its only one."""
    parts = STEP.fullmatch(step)
    if parts is None or not isinstance(found, dict):
        return None
    value = found.get(parts[1])
    if parts[2] is None:
        return value
    entries = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    # Servers of one model name it as they like.
    named = [one for one in entries if one.get(parts[2]) == model]
    return (named or entries)[0] if named or len(entries) == 1 else None
