"""The server: HTTP/1.1 on a plain asyncio protocol, for more than a thousand calls per second at little CPU."""

import asyncio
import json
import time
from functools import partial
from hashlib import sha256
from typing import Any, TextIO

from tests.modelserver.batches import LOST, Batches
from tests.modelserver.behaviours import STATUSES, Behaviour, Script, place
from tests.modelserver.formats import Call, error, no_quota, read
from tests.modelserver.presets import find
from tests.modelserver.presets.writing import answer, streamed
from tests.modelserver.rates import RateLimit

PLAIN = {"not-json": b"<html>Bad gateway</html>", "no-body": b"", "huge": b" " * 10_000_000}
REASONS = {200: "OK", 307: "Temporary Redirect"}


class ModelServer:
    """The script, the log and the counters that all connections share."""

    def __init__(self, log: TextIO, latency: float, bodies: bool) -> None:
        self.script = Script(latency=latency)
        self.latency, self.log, self.bodies = latency, log, bodies
        self.port = 0
        self.batches = Batches(self)
        self.rate: RateLimit | None = None
        self.number = self.connections = self.open = self.in_flight = 0

    def control(self, path: str, body: bytes) -> object:
        """POST /control/script: a script; /control/batch: settings of batches; GET /control/stats: the counters."""
        if path == "/control/batch":
            self.batches.settings |= json.loads(body)
        if path == "/control/rate":
            settings = json.loads(body)
            self.rate = RateLimit(**settings) if settings else None
        if path == "/control/script":
            self.script = Script.load(json.loads(body), self.latency)
        names = ("number", "connections", "open", "in_flight")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        return found | {"batch_posts": self.batches.posts, "batch_keys": self.batches.keys[-20:]}

    def record(self, call: Call, entry: dict[str, Any], behaviour: Behaviour, body: bytes, status: int | None) -> None:
        """One line of the log, written when the call ends and before its answer is sent."""
        side, round = place(call.user)
        line = {
            **entry,
            "answered": time.time(),
            "format": call.format,
            "model": call.model,
            "mode": call.asked.mode if call.asked else "",
            "key": call.key,
            "side": side,
            "round": round,
            "fault": behaviour.fault,
            "status": status,
            "sha256": sha256(body).hexdigest(),
        }
        if self.bodies:
            line |= {"system": call.system, "user": call.user, "body": json.loads(body)}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.buffer = bytearray()
        self.busy = self.closed = False
        self.hanging: list[Any] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections += 1
        self.server.open += 1
        self.name = self.server.connections

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; a call that hangs ends here."""
        self.closed = True
        self.server.open -= 1
        for call, entry, behaviour, body in self.hanging:
            self.end(call, entry, behaviour, body, None)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.take()

    def take(self) -> None:
        """The next whole request in the buffer, if there is one."""
        end = self.buffer.find(b"\r\n\r\n")
        if self.busy or end < 0:
            return
        first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        whole = end + 4 + int(headers.get("content-length", 0))
        if len(self.buffer) < whole:
            return
        body = bytes(self.buffer[end + 4 : whole])
        del self.buffer[:whole]
        self.busy = True
        self.handle(first.split(" ")[1], headers, body)

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Find what the call meets, and answer after its latency."""
        server = self.server
        if path.startswith("/control/"):
            return self.send(200, json.dumps(server.control(path, body)).encode())
        alike, rest = find(path)
        found = server.batches.handle(path, headers, body) if alike is None or alike.batches else None
        if found == LOST:
            return self.transport.abort()
        if found is not None:
            return self.send(*found)
        if alike and not body:
            return self.send(*alike.get(rest, headers))
        call = read(path, headers, json.loads(body)) if body and not alike else None
        if alike:
            call = alike.call(rest, headers, body)
        if call is None:
            return self.send(404, b'{"error": {"message": "no such address"}}')
        server.number += 1
        server.in_flight += 1
        entry: dict[str, Any] = {"seq": server.number, "arrived": time.time(), "path": path, "connection": self.name}
        if server.bodies:
            entry["headers"] = headers
        refused = server.rate.refuse(call) if server.rate else None
        if refused is not None:
            self.end(call, entry, Behaviour(fault="429"), body, 429)
            return self.send(429, refused[1], refused[0])
        behaviour = server.script.behaviour(call.model, call.user, call.key)
        if behaviour.latency:
            loop = asyncio.get_running_loop()
            loop.call_later(behaviour.latency, self.respond, call, entry, behaviour, body)
        else:
            self.respond(call, entry, behaviour, body)

    def respond(self, call: Call, entry: dict[str, Any], behaviour: Behaviour, body: bytes) -> None:
        fault = behaviour.fault
        if fault == "hang":
            self.hanging.append((call, entry, behaviour, body))
            return
        status, answered, headers = self.outcome(call, entry, behaviour)
        self.end(call, entry, behaviour, body, None if fault == "drop" or self.closed else status)
        if fault == "drop":
            self.transport.abort()
        elif fault == "half":
            self.transport.write(_head(200, len(answered), {}) + answered[: len(answered) // 2])
            self.transport.close()
        elif fault == "drip":
            self.transport.write(_head(200, len(answered), {}))
            self.drip(answered)
        else:
            self.send(status, answered, headers)

    def outcome(self, call: Call, entry: dict[str, Any], behaviour: Behaviour) -> tuple[int, bytes, dict[str, str]]:
        fault = behaviour.fault
        headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after else {}
        headers |= behaviour.headers
        headers |= self.server.rate.headers() if self.server.rate else {}
        refusal = call.refusal or (call.alike and call.alike.context_refusal(call, behaviour))
        if refusal:
            return refusal.status, json.dumps(call.alike.error(refusal)).encode(), headers
        if call.problem:
            return 400, json.dumps(error(call.format, 400, call.problem)).encode(), headers
        if fault in STATUSES:
            status = STATUSES[fault]
            return status, json.dumps(_error(call, status, f"scripted {fault}")).encode(), headers
        if fault == "echo-key":
            return 401, json.dumps(_error(call, 401, f"wrong key {call.key}")).encode(), headers
        if fault == "no-quota":
            return 429, json.dumps(no_quota(call.format)).encode(), headers
        if fault == "redirect":
            return 307, b"", {"Location": entry["path"]}
        if fault == "error-body":
            return 200, json.dumps(_error(call, 500, "scripted error under 200")).encode(), headers
        if behaviour.body:
            return behaviour.status, behaviour.body.encode(), headers
        if fault in PLAIN:
            return 200, PLAIN[fault], headers
        answered = answer(call, behaviour, entry["seq"])
        for name, value in behaviour.more.items():
            answered[name] = {**answered[name], **value} if isinstance(answered.get(name), dict) else value
        if call.asked and call.asked.body.get("stream"):
            return 200, streamed(answered), headers
        return 200, json.dumps(answered).encode(), headers

    def end(self, call: Call, entry: dict[str, Any], behaviour: Behaviour, body: bytes, status: int | None) -> None:
        """Log the call; status None: its client got no answer."""
        self.server.in_flight -= 1
        self.server.record(call, entry, behaviour, body, status)

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Write the answer and take the next request."""
        if not self.closed:
            self.transport.write(_head(status, len(body), headers or {}) + body)
        self.busy = False
        self.take()

    def drip(self, rest: bytes) -> None:
        """One byte every 50 ms."""
        if self.closed or not rest:
            self.busy = False
            return
        self.transport.write(rest[:1])
        asyncio.get_running_loop().call_later(0.05, self.drip, rest[1:])


def _error(call: Call, status: int, message: str) -> dict[str, Any]:
    refused: dict[str, Any] = (call.alike.refused if call.alike else partial(error, call.format))(status, message)
    return refused


def _head(status: int, length: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in {"Content-Length": length, **headers}.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
