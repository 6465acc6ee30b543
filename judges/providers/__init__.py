"""Providers: one small client for each way of asking a model. Found by name, imported on first use."""

import asyncio
from collections.abc import Callable
from functools import cache
from importlib import import_module

from judges.records import Judge, Provider

PROVIDERS = {
    "openai": "judges.providers.openai.OpenAIProvider",
    "openai-compatible": "judges.providers.openai_compatible.CompatibleProvider",
    "anthropic": "judges.providers.anthropic.AnthropicProvider",
    "google": "judges.providers.google.GoogleProvider",
    "rerank-endpoint": "judges.providers.rerank.RerankProvider",
    "embed-endpoint": "judges.providers.embed.EmbedProvider",
    "offline": "judges.providers.offline.OfflineProvider",
}

HOMES = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "google": ("https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
}
"""Base URL and name of the key where a judge names none. The SDKs' own variables for addresses are not read."""

_Account = tuple[str, str, str]
_open: dict[asyncio.AbstractEventLoop, dict[_Account, Provider]] = {}


@cache
def load(provider: str) -> Callable[[Judge], Provider]:
    """The provider's class. Importing an SDK takes seconds: a program whose loop must not stand still loads it before,
    with `await asyncio.to_thread(load, judge.provider)`.
    """
    module, _, name = PROVIDERS[provider].rpartition(".")
    found: Callable[[Judge], Provider] = getattr(import_module(module), name)
    return found


def open_provider(judge: Judge) -> Provider:
    """The client of the judge's account, opened once for each event loop. Call it inside a running loop.

    Connections belong to the loop that made them, so each loop has its own client. `close_providers` releases them.
    """
    loop = asyncio.get_running_loop()
    for dead in [other for other in list(_open) if other.is_closed()]:  # canaries have a loop beside the engine's
        _open.pop(dead, None)
    accounts = _open.setdefault(loop, {})
    if judge.account not in accounts:
        accounts[judge.account] = load(judge.provider)(judge)
    return accounts[judge.account]


async def close_providers() -> None:
    """Close every client that was opened in this loop."""
    for provider in _open.pop(asyncio.get_running_loop(), {}).values():
        await provider.close()
