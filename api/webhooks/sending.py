"""Requests to receivers: to a checked IP address, no redirects, limits of time and bytes."""

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

# For everything: name, connection, TLS, request, answer.
TIMEOUT_S = 10.0
KEPT_BYTES = 1_000
REDIRECTS = range(300, 400)

Problem = WebhookAttempt.DeliveryProblem


@dataclass(frozen=True, slots=True)
class ReceiverAnswer:
    """Result of a request. `problem`: a WebhookAttempt.DeliveryProblem, or "" if delivered."""

    status: int | None
    milliseconds: int
    problem: str
    text: str = ""


async def send_request(url: str, headers: Mapping[str, str], body: str) -> ReceiverAnswer:
    """Send a body and return what came back; never raises for what a receiver or a network does."""
    began = time.monotonic()
    status: int | None = None
    kept, problem, words = bytearray(), "", ""
    try:
        # One limit for the whole: the client's own limits are for each step, and a receiver that
        # sends a byte a second would never reach them.
        async with asyncio.timeout(TIMEOUT_S), _open_client() as client:
            response = await client.send(await _build_request(client, httpx2.URL(url), headers, body), stream=True)
            status = response.status_code
            # Raw bytes: unpacking could turn a few of them into gigabytes. The rest is not read.
            async for piece in response.aiter_raw():
                kept += piece
                if len(kept) >= KEPT_BYTES:
                    break
            await response.aclose()
    except AddressRefused:
        problem = Problem.ADDRESS
    except NoPage:
        problem = Problem.NAME
    except TimeoutError:
        problem = Problem.TIMEOUT
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        problem, words = Problem.CONNECTION, " ".join(str(error).split()) or "Unexpected error"
    # What became of the body does not matter: with its status the receiver has decided.
    if status is not None:
        problem = "" if 200 <= status < 300 else Problem.REDIRECT if status in REDIRECTS else Problem.STATUS
        words = bytes(kept[:KEPT_BYTES]).decode("utf-8", "replace")
    took = int((time.monotonic() - began) * 1000)
    return ReceiverAnswer(status, took, problem, words.replace("\x00", "")[:KEPT_BYTES])


async def _build_request(
    client: httpx2.AsyncClient, url: httpx2.URL, headers: Mapping[str, str], body: str
) -> httpx2.Request:
    """Build the request to the checked address, which keeps the host's name in `Host` and in the certificate."""
    # Resolving a name blocks: in a thread, the other requests go on.
    address = await asyncio.get_running_loop().run_in_executor(None, find_address, url)
    return client.build_request(
        "POST",
        url.copy_with(host=address),
        headers={**headers, "Host": url.netloc.decode()},
        content=body.encode(),
        # The certificate must be of the name, not of the IP address. IPv6 stands in brackets in an address only.
        extensions={"sni_hostname": url.raw_host.decode().strip("[]")},
    )


def _open_client() -> httpx2.AsyncClient:
    # One for each request: a kept connection to an address was opened for the certificate of one name.
    return httpx2.AsyncClient(
        verify=_tls_context(),
        # A proxy of the environment would resolve the name once more, past the check.
        trust_env=False,
        timeout=None,
        follow_redirects=False,
        headers={
            "User-Agent": f"Quorum-Webhooks/{settings.VERSION}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        },
    )


@cache
def _tls_context() -> SSLContext:
    # Loading the authorities' certificates is slow, so all requests share them.
    return httpx2.create_ssl_context()


class BackgroundLoop:
    """An event loop in a thread of its own, so that requests go out side by side; a context."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: a worker that is killed does not wait for a receiver.
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)

    def __enter__(self) -> "BackgroundLoop":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, ReceiverAnswer]) -> "Future[ReceiverAnswer]":
        """Start a request; its answer comes in the future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)
