"""The script that engine_ratio compares the engine with: the same prompts, sent with an SDK, 128 at a time."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

IN_FLIGHT = 128
Send = Callable[[dict[str, Any]], Awaitable[str]]


def openai(base_url: str) -> Send:
    """Return a function that sends chat completions."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="bare", base_url=base_url, max_retries=0)

    async def send(body: dict[str, Any]) -> str:
        return (await client.chat.completions.create(**body)).choices[0].message.content or ""

    return send


def anthropic(base_url: str) -> Send:
    """Return a function that sends messages."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="bare", base_url=base_url, max_retries=0)

    async def send(body: dict[str, Any]) -> str:
        return "".join(block.text for block in (await client.messages.create(**body)).content if block.type == "text")

    return send


def google(base_url: str) -> Send:
    """Return a function that calls generateContent."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=base_url, api_version="v1beta")
    client = genai.Client(api_key="bare", vertexai=False, http_options=options)

    async def send(body: dict[str, Any]) -> str:
        return (await client.aio.models.generate_content(**body)).text or ""

    return send


async def main(send: Send, bodies: list[dict[str, Any]]) -> None:
    """Send every body once."""
    remaining = iter(bodies)

    async def send_remaining() -> None:
        for body in remaining:
            json.loads(await send(body))

    await asyncio.gather(*(send_remaining() for _ in range(IN_FLIGHT)))


if __name__ == "__main__":
    sdk, base_url, file = sys.argv[1:]
    open_client = {"openai": openai, "anthropic": anthropic, "google": google}[sdk]
    asyncio.run(main(open_client(base_url), json.loads(Path(file).read_text())))
