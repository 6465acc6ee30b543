"""Providers: a small client for each wire format, found by name and imported on first use."""

import asyncio
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from corpus.errors import BadInput
from judges.presets import PRESETS
from judges.records import Judge, Provider

# Provider classes by a preset's wire format and client.
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
# Packages that a client needs in addition to the site's own.
EXTRA = {"bedrock": ("boto3", "botocore"), "vertex": ("google.auth", "requests")}

_Account = tuple[str, str, str]
_open: dict[asyncio.AbstractEventLoop, dict[_Account, Provider]] = {}


@cache
def load_provider(provider: str) -> Callable[[Judge], Provider]:
    """Return the class that speaks the preset's wire format. Raises BadInput if packages are missing."""
    # Importing an SDK takes seconds: code in a running loop calls this in a thread first.
    require_extra(provider)
    preset = PRESETS[provider]
    module, _, name = CLASSES[preset.wire, preset.client].rpartition(".")
    provider_class: Callable[[Judge], Provider] = getattr(import_module(module), name)
    return provider_class


def require_extra(provider: str) -> None:
    """Raise BadInput if the provider's client needs packages that are not installed."""
    if PRESETS[provider].client in EXTRA and any(find_spec(name) is None for name in EXTRA[PRESETS[provider].client]):
        raise BadInput(f"Provider {provider} needs the cloud extra: run make install-cloud")


def open_provider(judge: Judge) -> Provider:
    """Return the client of the judge's account. Call it inside a running loop; `close_providers` releases it."""
    # Connections belong to the loop that opened them, so each loop has its own client; canaries run a second loop
    # beside the engine's.
    loop = asyncio.get_running_loop()
    for opened_loop in list(_open):
        if opened_loop.is_closed():
            _open.pop(opened_loop, None)
    accounts = _open.setdefault(loop, {})
    if judge.account not in accounts:
        accounts[judge.account] = load_provider(judge.provider)(judge)
    return accounts[judge.account]


async def close_providers() -> None:
    """Close every client that was opened in this loop."""
    for provider in _open.pop(asyncio.get_running_loop(), {}).values():
        await provider.close()
