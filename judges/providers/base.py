"""Base of all SDK providers: a request's fields, time limit and credentials, and the meaning of the stored body."""

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
from judges.providers.replies import (
    error_code,
    finite_number,
    get_path,
    parse_body,
    refusal_error,
    storable_text,
)
from judges.providers.tokens import Tokens, from_command
from judges.records import Body, Judge, ModelRequest, Reply
from judges.stored_keys import STORED, address_of, decrypt_key

LATE = "no whole answer within"
LOOK_UP_S = 10.0  # Time limit of free look-ups, on which nothing depends.
PLACEHOLDER = "set-for-each-call"  # Instead of the key, which no client stores: it is read again for each call.
UNPACKED = {"accept-encoding": "identity"}
TOOL = "answer"  # The only tool in mode `tool`: its arguments are the answer.
DESCRIPTION = "Gives the answer. Call it exactly once."
COUNTS = {"usage", "usageMetadata"}  # Fields of a body with the call's token counts.
# Keys of a judge whose values go into a request unchanged.
PLAIN = ("top_p", "seed", "stop", "reasoning_effort", "service_tier")


class SdkProvider(ABC):
    """A client of one account. Subclasses define how to send a request and how to read an answer."""

    client: Any  # The SDK's.
    key_header = "Authorization"
    key_prefix = "Bearer "
    model_key = "model"  # Field of an answer with its model.
    own_headers: dict[str, Any] = {}  # Unsets headers in which the SDK would send the placeholder.

    def __init__(self, judge: Judge) -> None:
        self.preset = judge.preset
        self.base_url = judge.base_url or self.preset.base_url
        self.key_env = judge.api_key_env or self.preset.key_env
        self.encrypted_key, self.address = judge.encrypted_key, address_of(judge.provider, judge.base_url)
        self.host = urlsplit(self.base_url).netloc
        self.local = is_loopback(self.base_url)
        self.passes = asyncio.Lock()
        self.route = route_to(self.base_url)
        self.tokens = Tokens()

    @abstractmethod
    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call by the SDK's documented method; `received` takes the answer before the SDK parses it."""

    @abstractmethod
    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the reply in a body, without its raw text and model; None if the wire format is a different one."""

    def client_options(self, kind: type[httpx2.AsyncClient]) -> dict[str, Any]:
        """Return the options of an SDK's client: connections of its `kind`, and no retries: the engine retries."""
        http = http_client(kind, self.route)
        return {"http_client": http, "max_retries": 0, "timeout": None, "default_headers": UNPACKED}

    def parsed(self, raw: str) -> dict[str, Any]:
        """Return the JSON object of a body; {} if there is none."""
        return parse_body(raw)

    async def complete(self, request: ModelRequest) -> Reply:
        """Send exactly one request, which ends within the judge's `timeout_s`. Raises ProviderError."""
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
        # A refusal is short, and other calls wait for its meaning.
        if received.status is None or received.status < 300:
            await self.wait_for_pass()
        return self.outcome(received, request.judge)

    async def wait_for_pass(self) -> None:
        """Wait for a pass of the event loop in which no other call builds a request or reads an answer."""
        # An SDK needs milliseconds of the processor for either. A hundred of them in one pass would leave the
        # answers that arrive meanwhile in their sockets: paid for, and not stored.
        async with self.passes:
            await asyncio.sleep(0)

    async def attempt(self, request: ModelRequest, received: Received) -> None:
        """Send the request. An SDK's own error counts only if no answer was received. Raises Rejected."""
        try:
            await self.send(request, received)
        except (ProviderError, TimeoutError):
            raise
        except Exception as error:
            response = getattr(error, "response", None)
            if isinstance(response, httpx2.Response) and received.status is None:
                received.hide(response.request.headers)
                await received.read_body(response.status_code, response.headers, response.aiter_bytes())
            elif received.body is None:
                received.broke(error)
            if received.status is None and not received.failure:
                # Neither an answer nor a connection: nothing was sent, and the same request would fail again.
                raise Rejected(f"{self.host}: the request could not be made: {error}") from error

    async def keep(self, call: AbstractAsyncContextManager[Any], received: Received) -> None:
        """Store the raw answer of an SDK's method `with_streaming_response`."""
        async with call as response:
            received.hide(response.http_request.headers)
            await received.read_body(response.status_code, response.headers, response.iter_bytes())

    def headers(self, judge: Judge, received: Received) -> dict[str, Any]:
        """Return the headers of a call besides the SDK's own: the judge's extra headers and the credentials."""
        extra = judge.parameters.get("extra_headers", {})
        extra_headers = {name: value for name, value in extra.items() if name.lower() not in SECRET}
        return self.own_headers | extra_headers | dict(received.credentials)

    def outcome(self, received: Received, judge: Judge) -> Reply:
        """Return the reply in the received body. Raises a ProviderError if there is none."""
        if received.body is not None:
            return self.meaning(received.body, judge)
        if received.misconfigured:
            raise Refused(f"{self.host}: {received.failure}")
        error = Unreachable(f"{self.host}: {received.failure}", status=received.status, raw=received.text)
        error.billed = not received.unsent
        error.late = received.late
        raise error

    def meaning(self, body: Body, judge: Judge) -> Reply:
        """Return the reply in a stored body. Raises the ProviderError that the body means."""
        status, raw = body.status, body.text
        if not 200 <= status < 300:
            raise self.refused(status, body, judge)
        if not body.whole:
            message = f"{self.host}: the answer is longer than {MAX_BODY} bytes; its beginning is kept"
            raise BadAnswer(message, status=status, raw=raw)
        answer = self.parsed(raw)
        if answer.get("error"):
            raise self.refused(error_code(answer, status), body, judge, answer)
        reply = self.read(answer, judge)
        if reply is None:
            raise BadAnswer(f"{self.host}: the answer is not in the provider's format", status=status, raw=raw)
        if reply.finish_reason == "limited":
            error = Refused(f"{self.host}: the provider has limited this account: ask it why", status=status, raw=raw)
            error.reply = self.billed(reply, answer, body)
            raise error
        return self.billed(reply, answer, body)

    def billed(self, reply: Reply, answer: dict[str, Any], body: Body) -> Reply:
        """Return the reply with its raw text, and with the model, cost and service tier that the answer names."""
        counts, preset = answer.get("usage"), self.preset
        # The USD that the answer's usage reports, in `units` per dollar; None if it reports no cost.
        charge = finite_number(get_path(counts, *preset.bill.split("."))) if preset.bill else None
        if charge is None or charge < 0:
            bill = None
        else:
            # OpenRouter with the user's own key at the provider: the provider's charge is reported beside the fee.
            upstream = finite_number(get_path(counts, "cost_details", "upstream_inference_cost"))
            uses_own_key = get_path(counts, "is_byok") is True and upstream is not None and upstream > 0
            bill = (charge + (upstream or 0.0 if uses_own_key else 0.0)) / preset.bill_units
        return replace(
            reply,
            raw=body.text,
            model=storable_text(answer.get(self.model_key), 200),
            bill=body.bill if bill is None else bill,
            tier=reply.tier or storable_text(answer.get("service_tier") or get_path(counts, "service_tier"), 50),
        )

    def refused(
        self, status: int, body: Body, judge: Judge | None = None, answer: dict[str, Any] | None = None
    ) -> ProviderError:
        """Return the error that the status means, with the tokens used until then; it names a key that was rejected."""
        error = refusal_error(self.host, status, body.text, body.retry_after, answer)
        answer = self.parsed(body.text) if answer is None else answer
        # Half an answer is paid for as well.
        if judge is not None and answer.keys() & COUNTS and (reply := self.read(answer, judge)) is not None:
            error.reply = self.billed(reply, answer, body)
        if isinstance(error, Rejected) and not isinstance(error, Declined) and status in (401, 403):
            error.args = (f"{error} (key: {self.shown_key()})",)
            self.tokens.forget()
        return error

    def shown_key(self) -> str:
        """Return how a message names the key: by its environment variable, or by the source of the token."""
        if self.key_env.startswith(STORED):
            return "the stored one"
        return "a token of token_command" if self.tokens.cached else self.key_env or "none is set"

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """Return the headers that authorize a call: the token of the judge's command, or its key. Raises Refused."""
        self.encrypted_key = judge.encrypted_key  # A replaced key counts from now on.
        command = tuple(judge.parameters.get("token_command") or ())
        if not command:
            return self.credentials()
        self.allow()
        return {"Authorization": f"Bearer {await self.tokens.of(command, partial(from_command, command))}"}

    def allow(self) -> None:
        """Raise Refused in a test (QUORUM_LOOPBACK_ONLY) for any host but this machine."""
        if only_loopback() and not self.local:
            raise Refused(f"{self.host} is not on this machine, and QUORUM_LOOPBACK_ONLY forbids such calls")

    def credentials(self) -> dict[str, str]:
        """Return the header with the key, read now (corpus.collections.secrets). Raises Refused if none is set."""
        self.allow()
        if not self.key_env:
            return {}
        stored = self.key_env.startswith(STORED)
        try:
            key = decrypt_key(self.encrypted_key, self.key_env, self.address) if stored else read_secret(self.key_env)
        except BadInput as error:
            raise Refused(str(error)) from None
        if not key and self.key_env == self.preset.key_env and not self.preset.key_required:
            return {}
        if not key:
            raise Refused(f"Set the environment variable {self.key_env} to the API key of {self.host}")
        if not (key.isascii() and key.isprintable()) or " " in key:
            holder = "the stored key" if stored else f"the environment variable {self.key_env}"
            raise Refused(f"{holder} holds characters that no key has")
        return {self.key_header: self.key_prefix + key}

    async def look_up(self, address: str, headers: Mapping[str, str]) -> object:
        """Return the JSON at a free address; None if there is none, for any reason."""
        try:
            received = Received(self.credentials())
            async with asyncio.timeout(LOOK_UP_S), http_client(httpx2.AsyncClient, self.route) as http:
                request_headers = {**headers, **UNPACKED, **received.credentials}
                async with http.stream("GET", address, headers=request_headers) as response:
                    await received.read_body(response.status_code, response.headers, response.aiter_bytes())
            return json.loads(received.text) if received.status == 200 else None
        except (ProviderError, httpx2.HTTPError, TimeoutError, ValueError, RecursionError):
            return None

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


class PostProvider(SdkProvider):
    """Base of providers without an SDK: one POST of JSON, without a prompt."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client = http_client(httpx2.AsyncClient, self.route)

    async def post(self, path: str, body: dict[str, Any], request: ModelRequest, received: Received) -> None:
        """Send the body and store the answer."""
        headers = UNPACKED | self.headers(request.judge, received)
        async with self.client.stream("POST", f"{self.base_url}/{path}", json=body, headers=headers) as response:
            await received.read_body(response.status_code, response.headers, response.aiter_bytes())

    async def close(self) -> None:
        await self.client.aclose()


def add_parameters(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's parameters and its thinking, each under the preset's name for it."""
    # The temperature is 0 unless the judge names another; "default" sends none.
    parameters, preset = judge.parameters, judge.preset
    fields = {"temperature": parameters.get("temperature", 0), "max_output_tokens": judge.max_output_tokens}
    fields |= {key: parameters[key] for key in PLAIN if key in parameters}
    for key, value in fields.items():
        if key in preset.names and not (key == "temperature" and value == "default"):
            *steps, last = preset.names[key].split(".")
            parent = body
            for step in steps:
                parent = parent.setdefault(step, {})
            parent[last] = value
    if preset.thinking and "thinking" in parameters:
        merge_fields(body, THINKING[preset.thinking](parameters["thinking"]))
    return body


def add_extra_body(body: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Add the judge's `extra_body`, which overrides all other fields."""
    return merge_fields(body, judge.parameters.get("extra_body", {}))


def merge_fields(body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Add fields to the body, recursively."""
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(body.get(key), dict):
            merge_fields(body[key], value)
        else:
            body[key] = merge_fields({}, value) if isinstance(value, dict) else value
    return body
