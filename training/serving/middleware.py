"""ASGI middleware of the model endpoint: it checks the token, and reads and decompresses the body within a limit."""

import hmac
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from training.published.protocol import MOST_BYTES

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Refuse = Callable[[int, str], Callable[[Any, Any, Any], Awaitable[None]]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
PACKINGS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS, "identity": 0, "": 0}

GUARDED = "/v1/models"  # The only GET that needs the token, as every POST does.


class TokenCheck:
    """Middleware that refuses requests without the bearer token, unless the token is ""."""

    def __init__(self, app: Application, token: str, refuse: Refuse) -> None:
        self.application, self.refuse = app, refuse
        self.expected = f"Bearer {token}".encode() if token else b""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.expected and (scope["method"] == "POST" or scope["path"] == GUARDED):
            authorization = dict(scope["headers"]).get(b"authorization", b"")
            # In constant time: the duration must not reveal how much of a token was right.
            if not hmac.compare_digest(authorization, self.expected):
                problem = self.refuse(401, "give the service's token: Authorization: Bearer ...")
                return await problem(scope, receive, send)
        return await self.application(scope, receive, send)


class UnpackedBody:
    """Middleware that passes on the decompressed body (gzip or deflate) as one message.

    `refuse(status, message)` makes the response to a body that is too large or cannot be decompressed.
    """

    def __init__(self, app: Application, refuse: Refuse) -> None:
        self.application, self.refuse = app, refuse

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.application(scope, receive, send)
        headers = dict(scope["headers"])
        packing = headers.pop(b"content-encoding", b"").decode("latin-1").strip().lower()
        if packing not in PACKINGS:
            problem = self.refuse(415, f"Content-Encoding {packing} is not read: send gzip, deflate or neither")
            return await problem(scope, receive, send)
        data = bytearray()
        unpack = zlib.decompressobj(PACKINGS[packing]) if PACKINGS[packing] else None
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part, more = message.get("body", b""), message.get("more_body", False)
            try:
                # Limited during decompression, since kilobytes of gzip may expand to gigabytes.
                data += unpack.decompress(part, MOST_BYTES + 1 - len(data)) if unpack else part
            except zlib.error as error:
                return await self.refuse(400, f"the body is not {packing}: {error}")(scope, receive, send)
            if len(data) > MOST_BYTES:
                problem = self.refuse(413, f"more than {MOST_BYTES:,} bytes in one request")
                return await problem(scope, receive, send)
        # Every body is read as JSON, whatever content type the client sends.
        headers |= {b"content-length": str(len(data)).encode(), b"content-type": b"application/json"}
        messages: list[Message] = [{"type": "http.request", "body": bytes(data), "more_body": False}]

        async def receive_body() -> Message:
            return messages.pop() if messages else await receive()

        scope = {**scope, "headers": list(headers.items())}
        return await self.application(scope, receive_body, send)
