"""Base of all SDK providers: a request's fields, time limit, credentials, the kept body, and what it means."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2

from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from judges.errors import BadAnswer, Declined, NotSent, ProviderError, Refused, Rejected, Unreachable
from judges.presets.thinking import THINKING
from judges.providers.connections import http_client, is_loopback, only_loopback, route_to
from judges.providers.received import MAX_BODY, SECRET, Received
from judges.providers.replies import error_code, get_path, parse_body, read_bill, refusal_error, storable_text
from judges.providers.tokens import Tokens, from_command
from judges.records import Body, Judge, ModelRequest, Reply

LATE = "no whole answer within"
LOOK_UP_S = 10.0  # For what costs nothing and decides nothing.
PLACEHOLDER = "set-for-each-call"  # In place of the key, which no client holds: it is read anew for each call.
UNPACKED = {"accept-encoding": "identity"}
TOOL = "answer"  # The one tool of mode `tool`: its arguments are the answer.
DESCRIPTION = "Gives the answer. Call it exactly once."
COUNTS = {"usage", "usageMetadata"}  # Where bodies keep what a call used.
# Judge keys whose values go into a request as they are.
PLAIN = ("top_p", "seed", "stop", "reasoning_effort", "service_tier")


class SdkProvider(ABC):
    """A client of one account. Subclasses say how to send a request and where an answer keeps its parts."""

    client: Any  # The SDK's.
    key_header = "Authorization"
    key_prefix = "Bearer "
    model_key = "model"  # Where an answer names its model.
    own_headers: dict[str, Any] = {}  # Headers in which the SDK would show the placeholder, and its word for none.

    def __init__(self, judge: Judge) -> None:
        self.preset = judge.preset
        self.base_url = judge.base_url or self.preset.base_url
        self.key_env = judge.api_key_env or self.preset.key_env
        self.host = urlsplit(self.base_url).netloc
        self.local = is_loopback(self.base_url)
        self.passes = asyncio.Lock()
        self.route = route_to(self.base_url)
        self.tokens = Tokens()

    @abstractmethod
    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call by the SDK's documented method; the answer is taken before the SDK makes something of it."""

    @abstractmethod
    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """The reply in a body of this wire format, but for its raw text and its model; None when it is of another."""

    def client_options(self, kind: type[httpx2.AsyncClient]) -> dict[str, Any]:
        """Return options of an SDK's client: connections of its own `kind`, and no retries, which the engine makes."""
        http = http_client(kind, self.route)
        return {"http_client": http, "max_retries": 0, "timeout": None, "default_headers": UNPACKED}

    def parsed(self, raw: str) -> dict[str, Any]:
        """Return the JSON object of a body; {} when it holds none."""
        return parse_body(raw)

    async def complete(self, request: ModelRequest) -> Reply:
        """Send exactly one request; the whole of it ends within the judge's `timeout_s`. Raises ProviderError."""
        credentials = await self.authorized(request.judge)
        received = Received(credentials, arrived=request.arrived, began=request.began)
        await self.wait_for_pass()
        if request.halted is not None and request.halted():
            raise NotSent(f"{self.host}: the call was halted before it left")
        if self.route.problem:
            raise Refused(f"{self.host}: {self.route.problem}")
        seconds = request.judge.timeout_s
        try:
            async with asyncio.timeout(seconds):
                await self.attempt(request, received)
        except TimeoutError:
            received.late = not received.failure
            received.failure = received.failure or f"{LATE} {seconds:g} s"
        # A refusal is short, and others wait for what it says.
        if received.status is None or received.status < 300:
            await self.wait_for_pass()
        return self.outcome(received, request.judge)

    async def wait_for_pass(self) -> None:
        """Wait for a pass of the event loop with no other long work: making a request, reading an answer."""
        # An SDK takes milliseconds of the processor for either. A hundred of them in one pass would
        # leave what arrives meanwhile in the socket, where it is paid for and not kept.
        async with self.passes:
            await asyncio.sleep(0)

    async def attempt(self, request: ModelRequest, received: Received) -> None:
        """Send the request. An SDK's own error counts only if no answer was received. Raises Rejected."""
        try:
            await self.send(request, received)
        except (ProviderError, TimeoutError):
            raise
        except Exception as error:
            answer = getattr(error, "response", None)
            if isinstance(answer, httpx2.Response) and received.status is None:
                received.hide(answer.request.headers)
                await received.read_body(answer.status_code, answer.headers, answer.aiter_bytes())
            elif received.kept is None:
                received.broke(error)
            if received.status is None and not received.failure:
                # No trace of an answer or of a connection: nothing was sent, and the same request would fail alike.
                raise Rejected(f"{self.host}: the request could not be made: {error}") from error

    async def keep(self, call: AbstractAsyncContextManager[Any], received: Received) -> None:
        """Keep the raw answer of an SDK's method `with_streaming_response`."""
        async with call as response:
            received.hide(response.http_request.headers)
            await received.read_body(response.status_code, response.headers, response.iter_bytes())

    def headers(self, judge: Judge, received: Received) -> dict[str, Any]:
        """Return the headers of a call besides the SDK's own: the judge's, and who asks."""
        extra = judge.parameters.get("extra_headers", {})
        said = {name: value for name, value in extra.items() if name.lower() not in SECRET}
        return self.own_headers | said | dict(received.credentials)

    def outcome(self, received: Received, judge: Judge) -> Reply:
        """Return the reply that the kept body means. Raises the ProviderError that it means otherwise."""
        if received.kept is not None:
            return self.meaning(received.kept, judge)
        if received.misconfigured:
            raise Refused(f"{self.host}: {received.failure}")
        error = Unreachable(f"{self.host}: {received.failure}", status=received.status, raw=received.text)
        error.billed = not received.unsent
        error.late = received.late
        raise error

    def meaning(self, body: Body, judge: Judge) -> Reply:
        """Return the reply that a kept body means. Raises the ProviderError that it means."""
        status, raw = body.status, body.text
        if not 200 <= status < 300:
            raise self.refused(status, body, judge)
        if not body.whole:
            message = f"{self.host}: the answer is longer than {MAX_BODY} bytes; its beginning is kept"
            raise BadAnswer(message, status=status, raw=raw)
        found = self.parsed(raw)
        if found.get("error"):
            raise self.refused(error_code(found, status), body, judge, found)
        reply = self.read(found, judge)
        if reply is None:
            raise BadAnswer(f"{self.host}: the answer is not in the provider's format", status=status, raw=raw)
        if reply.finish_reason == "limited":
            error = Refused(f"{self.host}: the provider has limited this account: ask it why", status=status, raw=raw)
            error.reply = self.billed(reply, found, body)
            raise error
        return self.billed(reply, found, body)

    def billed(self, reply: Reply, found: dict[str, Any], body: Body) -> Reply:
        """Return the reply with its raw text, and what the answer says of who answered and what it costs."""
        counts, preset = found.get("usage"), self.preset
        bill = read_bill(counts, preset.bill, preset.bill_units)
        return replace(
            reply,
            raw=body.text,
            model=storable_text(found.get(self.model_key), 200),
            bill=body.bill if bill is None else bill,
            tier=reply.tier or storable_text(found.get("service_tier") or get_path(counts, "service_tier"), 50),
        )

    def refused(
        self, status: int, body: Body, judge: Judge | None = None, found: dict[str, Any] | None = None
    ) -> ProviderError:
        """Return the error that the status means, with what was used before it; a key that is not accepted is named."""
        error = refusal_error(self.host, status, body.text, body.retry_after, found)
        found = self.parsed(body.text) if found is None else found
        # Half an answer is paid for, too.
        if judge is not None and found.keys() & COUNTS and (reply := self.read(found, judge)) is not None:
            error.reply = self.billed(reply, found, body)
        if isinstance(error, Rejected) and not isinstance(error, Declined) and status in (401, 403):
            error.args = (f"{error} (key: {self.shown_key()})",)
            self.tokens.forget()
        return error

    def shown_key(self) -> str:
        """Return what a message says of the key: the name of its variable, or where the token is from."""
        return "a token of token_command" if self.tokens.known else self.key_env or "none is set"

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """Return the headers that show who asks: a token that the judge's command gives, or its key. Raises Refused."""
        command = tuple(judge.parameters.get("token_command") or ())
        if not command:
            return self.credentials()
        self.allow()
        return {"Authorization": f"Bearer {await self.tokens.of(command, partial(from_command, command))}"}

    def allow(self) -> None:
        """Raises Refused in a test (QUORUM_LOOPBACK_ONLY) for any host but this one."""
        if only_loopback() and not self.local:
            raise Refused(f"{self.host} is not on this machine, and QUORUM_LOOPBACK_ONLY forbids such calls")

    def credentials(self) -> dict[str, str]:
        """Return the header with the key, read now (corpus.collections.secrets). Raises Refused where none is set."""
        self.allow()
        if not self.key_env:
            return {}
        try:
            key = read_secret(self.key_env)
        except BadInput as error:
            raise Refused(str(error)) from None
        if not key and self.key_env == self.preset.key_env and not self.preset.key_required:
            return {}
        if not key:
            raise Refused(f"Set the environment variable {self.key_env} to the API key of {self.host}")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise Refused(f"the environment variable {self.key_env} holds characters that no key has")
        return {self.key_header: self.key_prefix + key}

    async def look_up(self, address: str, headers: Mapping[str, str]) -> object:
        """Return the JSON at a free address; None where nothing is told, for any reason."""
        try:
            received = Received(self.credentials())
            async with asyncio.timeout(LOOK_UP_S), http_client(httpx2.AsyncClient, self.route) as http:
                sent = {**headers, **UNPACKED, **received.credentials}
                async with http.stream("GET", address, headers=sent) as answer:
                    await received.read_body(answer.status_code, answer.headers, answer.aiter_bytes())
            return json.loads(received.text) if received.status == 200 else None
        except (ProviderError, httpx2.HTTPError, TimeoutError, ValueError, RecursionError):
            return None

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


class PostProvider(SdkProvider):
    """Base of providers without an SDK: one POST of JSON. No prompt is sent."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client = http_client(httpx2.AsyncClient, self.route)

    async def post(self, path: str, body: dict[str, Any], request: ModelRequest, received: Received) -> None:
        """Send the body, and keep the answer."""
        headers = UNPACKED | self.headers(request.judge, received)
        async with self.client.stream("POST", f"{self.base_url}/{path}", json=body, headers=headers) as answer:
            await received.read_body(answer.status_code, answer.headers, answer.aiter_bytes())

    async def close(self) -> None:
        await self.client.aclose()


def add_parameters(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's parameters and its thinking, each under the preset's name for it."""
    # Temperature 0 unless the judge says another, or "default": then none is sent.
    given, preset = judge.parameters, judge.preset
    wanted = {"temperature": given.get("temperature", 0), "max_output_tokens": judge.max_output_tokens}
    wanted |= {key: given[key] for key in PLAIN if key in given}
    for key, value in wanted.items():
        if key in preset.names and not (key == "temperature" and value == "default"):
            *steps, last = preset.names[key].split(".")
            place = body
            for step in steps:
                place = place.setdefault(step, {})
            place[last] = value
    if preset.thinking and "thinking" in given:
        merge_fields(body, THINKING[preset.thinking](given["thinking"]))
    return body


def add_extra_body(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's `extra_body`, which goes before everything else."""
    return merge_fields(body, judge.parameters.get("extra_body", {}))


def merge_fields(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add fields, also to tables within tables."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(body.get(key), dict):
            merge_fields(body[key], value)
        else:
            body[key] = merge_fields({}, value) if isinstance(value, dict) else value
    return body
