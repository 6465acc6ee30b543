"""Free catalogues of providers: the names of their models, and the context length of the judge's own.

Nothing here may fail a check: a missing address, or an answer in an unknown form, gives no information.
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

# Address of a provider's list of models relative to the base URL, by wire format.
LISTS = {
    "chat": "models",
    "responses": "models",
    "messages": "v1/models?limit=1000",
    "generate": "v1beta/models?pageSize=1000",
}
VERSIONS = {"messages": {"anthropic-version": "2023-06-01"}}
NAMES = ("id", "name", "model", "model_name", "model_id")
# Fields of an entry of such a list that various providers use for the context length.
CONTEXT_FIELDS = (
    *("max_model_len", "context_length", "context_window"),
    *("max_context_length", "max_input_tokens", "inputTokenLimit"),
)
# Fields for the day on which a model is retired: those of OpenAI, OpenRouter, Mistral and others.
RETIREMENT_FIELDS = (
    *("shutdown_date", "shutdown_at", "expiration_date", "retirement_date", "deprecation_date", "deprecation"),
    *("retires_at", "end_of_life", "sunset_date"),
)
STEP = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")  # A step of a dotted path (judges.presets.record.Context).


class Catalogue(NamedTuple):
    """A provider's free information: its models, and the judge's model's context in tokens and last day, if known."""

    names: tuple[str, ...] = ()
    context: int | None = None
    ends: date | None = None


async def look_up(judge: Judge) -> Catalogue:
    """Return the names of the provider's models, and the context length and last day of the judge's own."""
    preset, provider = judge.preset, open_provider(judge)
    if not preset.asks or preset.client or not isinstance(provider, SdkProvider):
        return Catalogue()
    base = provider.base_url.rstrip("/") + "/"
    listing = await provider.look_up(urljoin(base, LISTS[preset.wire]), VERSIONS.get(preset.wire, {}))
    entries = listing if isinstance(listing, list) else [*get_list(listing, "data"), *get_list(listing, "models")]
    models = [entry for entry in entries if isinstance(entry, dict)]
    model = judge.model.removeprefix("models/")
    entry = next((model_entry for model_entry in models if model in _model_names(model_entry)), {})
    lengths = [entry.get(field) for field in CONTEXT_FIELDS]
    context = next((length for length in lengths if isinstance(length, int) and length > 1), None)
    if preset.context is not None:
        server_settings = await provider.look_up(urljoin(base, preset.context.path), {})
        context = context_length(preset.context, server_settings, judge.model) or context
    names = dict.fromkeys(name for model_entry in models for name in _model_names(model_entry))
    days = [parse_day(entry.get(field)) for field in RETIREMENT_FIELDS]
    return Catalogue(tuple(names), context, next(filter(None, days), None))


def _model_names(entry: dict[str, Any]) -> list[str]:
    """Return the name of a model for requests, as a list; [] if the entry has none."""
    names = [entry.get(key) for key in NAMES]
    return [name.removeprefix("models/") for name in names if isinstance(name, str) and name][:1]


def parse_day(value: object) -> date | None:
    """Return the day of a date in ISO format or in seconds since 1970; None for anything else."""
    try:
        if isinstance(value, str):
            return date.fromisoformat(value[:10])
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC).date()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def context_length(context: Context, settings: object, model: str) -> int | None:
    """Return the tokens that a request and its answer may have together; None if `settings` do not include it."""
    for path in context.at:
        value = settings
        for step in path.split("."):
            value = _follow_step(value, step, model)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _follow_step(settings: object, step: str, model: str) -> object:
    """Return the value under the step's key; for "data[id]", the list's entry for the model, or its only entry."""
    parts = STEP.fullmatch(step)
    if parts is None or not isinstance(settings, dict):
        return None
    value = settings.get(parts[1])
    if parts[2] is None:
        return value
    entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    # Servers with a single model name it as they like.
    matching_entries = [entry for entry in entries if entry.get(parts[2]) == model]
    return (matching_entries or entries)[0] if matching_entries or len(entries) == 1 else None
