"""The script that engine_ratio compares with: the openai SDK, the same prompts, 128 in flight, nothing stored."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

IN_FLIGHT = 128


async def main(base_url: str, bodies: list[dict[str, Any]]) -> None:
    """Send every body once."""
    client = AsyncOpenAI(api_key="bare", base_url=base_url, max_retries=0)
    waiting = iter(bodies)

    async def send() -> None:
        for body in waiting:
            answer = await client.chat.completions.create(**body)
            json.loads(answer.choices[0].message.content or "")

    await asyncio.gather(*(send() for _ in range(IN_FLIGHT)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text())))
