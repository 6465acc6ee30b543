"""What all SDK providers share: time limit, credentials, the kept body, and what it means."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from corpus.collections.secrets import secret
from corpus.errors import BadInput
from judges.providers import wire as wires
from judges.providers.environment import is_loopback
from judges.providers.replies import error_code, parse, refusal
from judges.providers.tokens import Tokens
from judges.providers.wire import Passes, Wire
from judges.records import (
    BadAnswer,
    Body,
    Judge,
    NotSent,
    ProviderError,
    Refused,
    Rejected,
    Reply,
    Request,
    Unreachable,
)

TIMEOUT_S = 60.0
LOOK_UP_S = 10.0
"""For what costs nothing and decides nothing."""


class SdkProvider(ABC):
    """A client of one account. Subclasses say how to send a request and where an answer keeps its parts."""

    key_header = "authorization"
    key_prefix = "Bearer "
    signs = False
    """The SDK signs a request that has no key of ours."""

    def __init__(self, judge: Judge) -> None:
        self.preset = judge.preset
        self.base_url = judge.base_url or self.preset.base_url
        self.key_env = judge.api_key_env or self.preset.key_env
        self.host = urlsplit(self.base_url).netloc
        self.local = is_loopback(self.base_url)
        self.passes = Passes()
        self.http = wires.http_client(self.base_url, self.passes, self.signs)
        self.tokens = Tokens()

    @abstractmethod
    async def send(self, request: Request) -> object:
        """One call through the SDK. What it returns is not used: the wire has kept the body."""

    @abstractmethod
    def read(self, body: dict[str, Any], raw: str, judge: Judge) -> Reply | None:
        """The reply in a body of this wire format; None when it is of another."""

    def parsed(self, raw: str) -> dict[str, Any]:
        """The JSON object of a body; {} when it holds none."""
        return parse(raw)

    async def complete(self, request: Request) -> Reply:
        """Send exactly one request; the whole of it ends within the judge's `timeout_s`. Raises ProviderError."""
        credentials = await self.authorized(request.judge)
        wire = Wire(credentials=credentials, arrived=request.arrived, began=request.began)
        await self.passes.turn()
        if request.halted is not None and request.halted():
            raise NotSent(f"{self.host}: the call was halted before it left")
        token = wires.current.set(wire)
        seconds = float(request.judge.parameters.get("timeout_s", TIMEOUT_S))
        try:
            async with asyncio.timeout(seconds):
                await self.send(request)
        except TimeoutError:
            wire.failure = wire.failure or f"no whole answer within {seconds:g} s"
        except Exception as error:
            # SDKs raise on bodies that they cannot use. The wire knows what came, and that decides; without a trace
            # on the wire nothing was sent, and the same request would fail alike.
            if wire.status is None and not wire.failure:
                raise Rejected(f"{self.host}: the request could not be made: {error!r}") from error
        finally:
            wires.current.reset(token)
        return self.outcome(wire, request.judge)

    def outcome(self, wire: Wire, judge: Judge) -> Reply:
        """The reply that the kept body means. Raises the ProviderError that it means otherwise."""
        if wire.kept is not None:
            return self.meaning(wire.kept, judge)
        if wire.misconfigured:
            raise Refused(f"{self.host}: {wire.failure}")
        error = Unreachable(f"{self.host}: {wire.failure}", status=wire.status, raw=wire.text)
        error.billed = not wire.unsent
        raise error

    def meaning(self, body: Body, judge: Judge) -> Reply:
        """The reply that a kept body means. Raises the ProviderError that it means otherwise."""
        status, raw = body.status, body.text
        if not 200 <= status < 300:
            raise self.refused(status, body)
        if not body.whole:
            message = f"{self.host}: the answer is longer than {wires.MAX_BODY} bytes; its beginning is kept"
            raise BadAnswer(message, status=status, raw=raw)
        found = self.parsed(raw)
        if found.get("error"):
            raise self.refused(error_code(found, status), body)
        reply = self.read(found, raw, judge)
        if reply is None:
            raise BadAnswer(f"{self.host}: the answer is not in the provider's format", status=status, raw=raw)
        return reply

    def refused(self, status: int, body: Body) -> ProviderError:
        """The error that the status means; a key that is not accepted is named."""
        error = refusal(self.host, status, body.text, body.retry_after)
        if isinstance(error, Rejected) and status in (401, 403):
            error.args = (f"{error} (key: {self.shown_key()})",)
            self.tokens.forget()
        return error

    def shown_key(self) -> str:
        """What a call shows, for a message: the name of the key's variable, or where the token is from."""
        return "a token of token_command" if self.tokens.known else self.key_env or "none is set"

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """The headers that show who asks: a token that the judge's command gives, or its key. Raises Refused."""
        command = judge.parameters.get("token_command")
        if not command:
            return self.credentials()
        self.allow()
        return {"authorization": f"Bearer {await self.tokens.of_command(tuple(command))}"}

    def allow(self) -> None:
        """Raises Refused in a test (QUORUM_LOOPBACK_ONLY) for any host but this one."""
        if wires.only_loopback() and not self.local:
            raise Refused(f"{self.host} is not on this machine, and QUORUM_LOOPBACK_ONLY forbids such calls")

    def credentials(self) -> dict[str, str]:
        """The header with the key, read now (corpus.collections.secrets: the environment, or a secret file).

        Raises Refused when the key is not set, or where `allow` does.
        """
        self.allow()
        if not self.key_env:
            return {}
        try:
            key = secret(self.key_env)
        except BadInput as error:
            raise Refused(str(error)) from None
        if not key and self.key_env == self.preset.key_env and not self.preset.key_required:
            return {}
        if not key:
            raise Refused(f"set the environment variable {self.key_env} to the API key of {self.host}")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise Refused(f"the environment variable {self.key_env} holds characters that no key has")
        return {self.key_header: self.key_prefix + key}

    async def rehearse(self, request: Request) -> None:
        """Go through a call to an address where nobody listens, without the key."""
        wires.current.set(Wire())
        with contextlib.suppress(Exception):
            await self.send(request)

    async def look_up(self, address: str, headers: Mapping[str, str]) -> object:
        """The JSON at an address that costs nothing; None where nothing is told, for whatever reason."""
        try:
            token = wires.current.set(Wire(credentials=self.credentials()))
        except ProviderError:
            return None
        try:
            async with asyncio.timeout(LOOK_UP_S):
                answer = await self.http.get(address, headers=dict(headers))
            return answer.json() if answer.status_code == 200 else None
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError):
            return None
        finally:
            wires.current.reset(token)

    async def close(self) -> None:
        """Release the connections."""
        await self.http.aclose()
