"""SDKs import most of themselves at their first call, which holds up all others: here it is gone through beforehand."""

import asyncio
import socket
from dataclasses import replace
from functools import cache

from judges import prompts
from judges.providers import load
from judges.records import Inputs, Judge, Request

LOCAL = "127.0.0.1"


def prepare(judge: Judge) -> None:
    """Load the judge's provider and go through a call that reaches nobody. Takes seconds: give it a thread."""
    _prepare(judge.provider)


@cache
def _prepare(provider: str) -> None:
    if hasattr(load(provider), "rehearse"):
        asyncio.run(_call(Judge(0, "rehearsal", provider, "none")))


async def _call(judge: Judge) -> None:
    inputs = Inputs("?", (), "", "")
    with socket.socket() as own:
        own.bind((LOCAL, 0))  # bound and not listening: whoever calls is refused
        client = load(judge.provider)(replace(judge, base_url=f"http://{LOCAL}:{own.getsockname()[1]}"))
        await client.rehearse(Request(judge, prompts.vote_prompt(inputs), prompts.VOTE_SCHEMA, inputs, "vote"))  # type: ignore[attr-defined]
        await client.close()
