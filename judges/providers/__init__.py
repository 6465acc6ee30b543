"""Providers: a small client for each way of asking a model, found by name, imported lazily."""

import asyncio
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from corpus.errors import BadInput
from judges.presets import PRESETS
from judges.records import Judge, Provider

# By a preset's wire and client.
CLASSES = {
    ("chat", ""): "judges.providers.openai.OpenAIProvider",
    ("chat", "azure"): "judges.providers.openai.AzureProvider",
    ("responses", ""): "judges.providers.responses.ResponsesProvider",
    ("messages", ""): "judges.providers.anthropic.AnthropicProvider",
    ("messages", "bedrock"): "judges.providers.bedrock.BedrockProvider",
    ("messages", "vertex"): "judges.providers.vertex.VertexAnthropicProvider",
    ("generate", ""): "judges.providers.google.GoogleProvider",
    ("generate", "vertex"): "judges.providers.vertex.VertexProvider",
    ("rerank", ""): "judges.providers.rerank.RerankProvider",
    ("embed", ""): "judges.providers.embed.EmbedProvider",
    ("search", "tavily"): "judges.providers.web_search.TavilyProvider",
    ("search", "exa"): "judges.providers.web_search.ExaProvider",
    ("offline", ""): "judges.providers.offline.OfflineProvider",
}
# Packages that a client needs beside those of the site.
EXTRA = {"bedrock": ("boto3", "botocore"), "vertex": ("google.auth", "requests")}

_Account = tuple[str, str, str]
_open: dict[asyncio.AbstractEventLoop, dict[_Account, Provider]] = {}


@cache
def load_provider(provider: str) -> Callable[[Judge], Provider]:
    """Return the class that speaks the preset's wire."""
    # Importing an SDK takes seconds: a running loop calls this in a thread before.
    require_extra(provider)
    known = PRESETS[provider]
    module, _, name = CLASSES[known.wire, known.client].rpartition(".")
    found: Callable[[Judge], Provider] = getattr(import_module(module), name)
    return found


def require_extra(provider: str) -> None:
    """Raises BadInput where the provider's client needs packages that are not installed."""
    if PRESETS[provider].client in EXTRA and any(find_spec(name) is None for name in EXTRA[PRESETS[provider].client]):
        raise BadInput(f"Provider {provider} needs the cloud extra: run make install-cloud")


def open_provider(judge: Judge) -> Provider:
    """Return the client of the judge's account. Call it inside a running loop; `close_providers` releases it."""
    # Connections belong to the loop that made them, so each loop has its own client.
    loop = asyncio.get_running_loop()
    for dead in [other for other in list(_open) if other.is_closed()]:  # canaries have a loop beside the engine's
        _open.pop(dead, None)
    accounts = _open.setdefault(loop, {})
    if judge.account not in accounts:
        accounts[judge.account] = load_provider(judge.provider)(judge)
    return accounts[judge.account]


async def close_providers() -> None:
    """Close every client that was opened in this loop."""
    for provider in _open.pop(asyncio.get_running_loop(), {}).values():
        await provider.close()
