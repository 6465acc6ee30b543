"""What a provider tells about its models for nothing: their names, and how many tokens the judge's own can hold.

Nothing here may fail a check: an address that is not there, or an answer of another form, tells nothing.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from judges.presets.context import context_length
from judges.providers import open_provider
from judges.providers.base import SdkProvider
from judges.providers.replies import get_list, get_path
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
ROOM: tuple[tuple[str, ...], ...] = (
    ("max_model_len",),
    ("context_length",),
    ("context_window",),
    ("max_context_length",),
    ("max_input_tokens",),
    ("inputTokenLimit",),
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What was told. `names`: of all models; `context`: tokens of the judge's own model, None where nobody says."""

    names: tuple[str, ...] = ()
    context: int | None = None


async def look_up(judge: Judge) -> Catalogue:
    """Ask the addresses that cost nothing."""
    preset, provider = judge.preset, open_provider(judge)
    if not preset.asks or preset.client or not isinstance(provider, SdkProvider):
        return Catalogue()
    base = provider.base_url.rstrip("/") + "/"
    told = await provider.look_up(urljoin(base, LISTS[preset.wire]), VERSIONS.get(preset.wire, {}))
    listed = _model_descriptions(told)
    context = _context_length(judge.model, listed)
    if preset.context is not None:
        own = await provider.look_up(urljoin(base, preset.context.path), {})
        context = context_length(preset.context, own, judge.model) or context
    names = (name for entry in listed for name in _model_names(entry))
    return Catalogue(tuple(dict.fromkeys(names)), context)


def _model_descriptions(body: object) -> list[dict[str, Any]]:
    """Descriptions of models."""
    listed = body if isinstance(body, list) else [*get_list(body, "data"), *get_list(body, "models")]
    return [entry for entry in listed if isinstance(entry, dict)]


def _model_names(entry: dict[str, Any]) -> list[str]:
    """What a model is called, the name that a request has first."""
    found = [entry.get(key) for key in NAMES]
    return [name.removeprefix("models/") for name in found if isinstance(name, str) and name][:1]


def _context_length(model: str, listed: list[dict[str, Any]]) -> int | None:
    """Of the entry with the model's name."""
    for entry in listed:
        if model.removeprefix("models/") in _model_names(entry):
            numbers = (get_path(entry, *path) for path in ROOM)
            return next((one for one in numbers if isinstance(one, int) and one > 1), None)
    return None
