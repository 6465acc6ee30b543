"""The script that search_run compares a run with: the same requests to a search engine, 20 at a time."""

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx2

IN_FLIGHT = 20


async def main(address: str, queries: list[str], depth: int) -> tuple[float, float]:
    """Send every query once, and return the seconds and those of the processor."""
    remaining = iter(queries)
    started_at, cpu = time.perf_counter(), time.process_time()
    async with httpx2.AsyncClient(trust_env=False) as client:

        async def send_remaining() -> None:
            for query in remaining:
                response = await client.post(address, json={"q": query, "n": depth})
                json.loads(response.raise_for_status().content)

        await asyncio.gather(*(send_remaining() for _ in range(IN_FLIGHT)))
    return time.perf_counter() - started_at, time.process_time() - cpu


if __name__ == "__main__":
    address, file, depth = sys.argv[1:]
    print(*asyncio.run(main(address, json.loads(Path(file).read_text()), int(depth))))
