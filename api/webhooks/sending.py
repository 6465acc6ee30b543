"""Requests to receivers of webhooks: to a checked IP address, without redirects, limited in time and size."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from api.models import WebhookAttempt
from api.webhooks.addresses import ReceiverClient
from corpus.url_fetch.client import FetchLimits
from corpus.url_fetch.problems import NoPage

# For everything: DNS, connection, TLS, request and response.
TIMEOUT_S = 10.0
SHOWN_BYTES = 1_000
REDIRECTS = range(300, 400)

Problem = WebhookAttempt.DeliveryProblem
# By code of a request that failed; all others are problems of the connection.
PROBLEMS = {"not-public": Problem.ADDRESS, "name": Problem.NAME, "slow": Problem.TIMEOUT}


@dataclass(frozen=True, slots=True)
class ReceiverAnswer:
    """The outcome of a request. `problem`: a WebhookAttempt.DeliveryProblem, or "" if delivered."""

    status: int | None
    milliseconds: int
    problem: str
    text: str = ""


async def send_request(url: str, headers: Mapping[str, str], body: str) -> ReceiverAnswer:
    """Send a body and return the outcome; errors of the receiver or the network are part of it."""
    start = time.monotonic()
    status: int | None = None
    received, problem, text = bytearray(), "", ""
    sent = {**headers, "User-Agent": f"Quorum-Webhooks/{settings.VERSION}", "Content-Type": "application/json"}
    limits = FetchLimits(seconds=TIMEOUT_S, redirects=0)
    try:
        async with (
            ReceiverClient(limits=limits) as client,
            client.stream("POST", url, headers=sent, content=body.encode()) as response,
        ):
            status = response.status
            # Not decompressed. The rest is not read.
            async for piece in response.raw_pieces():
                received += piece
                if len(received) >= SHOWN_BYTES:
                    break
    except NoPage as failure:
        problem, text = PROBLEMS.get(failure.code, Problem.CONNECTION), str(failure.values.get("error", ""))
    # Once there is a status, errors while reading the body do not matter.
    if status is not None:
        problem = "" if 200 <= status < 300 else Problem.REDIRECT if status in REDIRECTS else Problem.STATUS
        text = bytes(received[:SHOWN_BYTES]).decode("utf-8", "replace")
    milliseconds = int((time.monotonic() - start) * 1000)
    return ReceiverAnswer(status, milliseconds, problem, text.replace("\x00", "")[:SHOWN_BYTES])


class BackgroundLoop:
    """A context manager that runs an event loop in a thread, for concurrent requests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a worker that ends does not wait for a receiver.
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)

    def __enter__(self) -> "BackgroundLoop":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, ReceiverAnswer]) -> "Future[ReceiverAnswer]":
        """Start a request and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)
