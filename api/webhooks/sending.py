"""Requests to receivers of webhooks: to a checked IP address, without redirects, limited in time and size."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from ssl import SSLContext
from typing import Any

import httpx2
from django.conf import settings

from api.models import WebhookAttempt
from api.webhooks.addresses import AddressRefused, find_address
from corpus.url_fetch.problems import NoPage

# For everything: DNS, connection, TLS, request and response.
TIMEOUT_S = 10.0
SHOWN_BYTES = 1_000
REDIRECTS = range(300, 400)

Problem = WebhookAttempt.DeliveryProblem


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
    try:
        # One client for each request: a reused connection to an IP address was verified for another name.
        client = httpx2.AsyncClient(
            verify=_tls_context(),
            # A proxy of the environment would resolve the name again, past the check.
            trust_env=False,
            timeout=None,
            follow_redirects=False,
            headers={
                "User-Agent": f"Quorum-Webhooks/{settings.VERSION}",
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
            },
        )
        # One timeout for the whole request: the client's timeouts are for each step, and a receiver
        # that sends a byte a second would never reach them.
        async with asyncio.timeout(TIMEOUT_S), client:
            parts = httpx2.URL(url)
            # Resolving a name blocks, so it runs in a thread beside the other requests.
            address = await asyncio.get_running_loop().run_in_executor(None, find_address, parts)
            request = client.build_request(
                "POST",
                parts.copy_with(host=address),
                headers={**headers, "Host": parts.netloc.decode()},
                content=body.encode(),
                # The certificate must match the name instead of the IP address. Only URLs have IPv6 in brackets.
                extensions={"sni_hostname": parts.raw_host.decode().strip("[]")},
            )
            response = await client.send(request, stream=True)
            status = response.status_code
            # Raw bytes, since decompression could yield gigabytes. The rest is not read.
            async for piece in response.aiter_raw():
                received += piece
                if len(received) >= SHOWN_BYTES:
                    break
            await response.aclose()
    except AddressRefused:
        problem = Problem.ADDRESS
    except NoPage:
        problem = Problem.NAME
    except TimeoutError:
        problem = Problem.TIMEOUT
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        problem, text = Problem.CONNECTION, " ".join(str(error).split()) or "Unexpected error"
    # Once there is a status, errors while reading the body do not matter.
    if status is not None:
        problem = "" if 200 <= status < 300 else Problem.REDIRECT if status in REDIRECTS else Problem.STATUS
        text = bytes(received[:SHOWN_BYTES]).decode("utf-8", "replace")
    milliseconds = int((time.monotonic() - start) * 1000)
    return ReceiverAnswer(status, milliseconds, problem, text.replace("\x00", "")[:SHOWN_BYTES])


@cache
def _tls_context() -> SSLContext:
    # Loading the authorities' certificates is slow, so all requests share them.
    return httpx2.create_ssl_context()


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
