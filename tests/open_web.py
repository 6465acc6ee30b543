"""The open network as a local server: names become addresses in ONE place, which the tests replace.

`addresses.resolve` says here that a name has a public address, and where the socket for that
address is opened. Every other rule stays on.
"""

import contextlib
import ipaddress
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from corpus.url_fetch import addresses
from corpus.url_fetch.addresses import FetchTarget

PUBLIC = "93.184.215.14"
SENTENCE = "Ice sheets spread under their own weight because ice creeps under stress. "
NOISY = f"""<!doctype html><html><head><title>Why ice sheets are thin</title>
<script>var cookies = "accept all cookies";</script><style>nav {{ color: red }}</style></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop now</a></li><li><a href="/login">Log in</a></li></ul>
</nav>
<div class="cookie-banner">We value your privacy. Accept all cookies?</div>
<aside class="sidebar"><h3>Advertisement</h3><p>Buy the best skis of the season today!</p></aside>
<main><article><h1>Why ice sheets are thin</h1><p>{SENTENCE * 3}</p><p>Geothermal heat melts the base of the sheet, and
the melt water lets it slide towards the coast, where it calves into the sea.</p></article></main>
<div class="related"><h3>Related posts</h3><ul><li><a href="/1">Ten facts about penguins</a></li></ul></div>
<footer><p>Copyright 2026 Example Media. All rights reserved.</p><a href="/imprint">Imprint</a></footer></body>
</html>"""

# Hosts as an address may write them, each with the address that it is: none of them is on the public network.
HOSTILE = {
    "127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "127.1": "127.0.0.1", "2130706433": "127.0.0.1",
    "0x7f000001": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "127。0。0。1": "127.0.0.1", "0.0.0.0": "0.0.0.0",
    "10.0.0.1": "10.0.0.1", "172.16.0.1": "172.16.0.1", "192.168.1.1": "192.168.1.1", "100.64.0.1": "100.64.0.1",
    "169.254.169.254": "169.254.169.254", "198.18.0.1": "198.18.0.1", "224.0.0.1": "224.0.0.1",
    "240.0.0.1": "240.0.0.1", "255.255.255.255": "255.255.255.255", "[::1]": "::1", "[::]": "::",
    "[::ffff:127.0.0.1]": "::ffff:127.0.0.1", "[::ffff:a9fe:a9fe]": "::ffff:169.254.169.254",
    "[::127.0.0.1]": "::127.0.0.1", "[fe80::1]": "fe80::1", "[fd12:3456::1]": "fd12:3456::1",
    "[64:ff9b::7f00:1]": "64:ff9b::7f00:1", "[2002:7f00:1::]": "2002:7f00:1::",
}  # fmt: skip

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Web:
    """A local server that stands for the open network: path to answer; what was asked for, in order."""

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=lambda: {"ice.example": [PUBLIC]})
    looked_up: list[str] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> list[FetchTarget]:
        """Names as `names` has them, and addresses: all reached at the local server. Other names as they really are."""
        self.looked_up.append(host)
        with contextlib.suppress(ValueError):
            return [(str(ipaddress.ip_address(host)), ("127.0.0.1", self.port))]
        if host not in self.names:
            return real_resolve(host, port)
        return [(address, ("127.0.0.1", self.port)) for address in self.names[host]]

    def page(self, path: str, body: str | bytes, **headers: str) -> None:
        sent = body.encode() if isinstance(body, str) else body
        kept = {"Content-Type": "text/html; charset=utf-8", **{k.replace("_", "-"): v for k, v in headers.items()}}

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            for name, value in {**kept, "Content-Length": str(len(sent))}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(sent)

        self.answers[path] = answer

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Location", to.encode().decode("latin-1"))
            handler.end_headers()

        self.answers[path] = answer


real_resolve = addresses.resolve_host


@contextlib.contextmanager
def open_web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """The server, and `resolve` replaced, for a fixture."""
    found = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.headers["Host"], self.path))
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"] or 0)))
            answer = found.answers.get(self.path)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                answer(self) if answer else self.send_error(404)

        do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setattr(addresses, "resolve_host", found.resolve)
    yield found
    server.shutdown()
    server.server_close()
