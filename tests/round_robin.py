"""A proxy in front of several web nodes, as small as one can be: by turns, to those whose readiness says that they are.

It sends a request once. What a node does not answer is a 502 for the visitor, so that a test sees it.
"""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOK_S = 0.2
OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "server", "date"}


class RoundRobin(ThreadingHTTPServer):
    """The proxy: `address`, and `ready` with the ports of the nodes that get requests now."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Forwarder)
        self.ready = set[int]()
        self.turns = itertools.count()
        self.ended = threading.Event()
        self.failures: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def look(self, port: int) -> None:
        """Ask a node for its readiness, until the end. One that is slow to say stays what it was."""
        while not self.ended.wait(LOOK_S):
            with suppress(TimeoutError):
                (self.ready.add if is_ready(port) else self.ready.discard)(port)

    def next_node(self) -> int:
        """The port whose turn it is; 0 where no node is ready."""
        ready = sorted(self.ready.copy())
        return ready[next(self.turns) % len(ready)] if ready else 0


def is_ready(port: int) -> bool:
    """Whether the node at this port says that it can serve pages. Raises TimeoutError."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except TimeoutError:
        raise
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class Forwarder(BaseHTTPRequestHandler):
    """One request of a visitor, sent on over a connection of its own."""

    server: RoundRobin

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        port = self.server.next_node()
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_ONE_CONNECTION}
            connection.request(self.command, self.path, body, {**headers, "Connection": "close"})
            answer = connection.getresponse()
            status, found, text = answer.status, answer.getheaders(), answer.read()
        except (OSError, HTTPException) as error:
            self.server.failures.append(f"{self.command} {self.path} at {port}: {error!r}")
            status, found, text = 502, [], b""
        finally:
            connection.close()
        self.send_response(status)
        for name, value in found:
            if name.lower() not in OF_ONE_CONNECTION | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = forward

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def round_robin(ports: Sequence[int]) -> Iterator[RoundRobin]:
    """A proxy in front of the nodes at these ports."""
    proxy = RoundRobin()
    threads = [threading.Thread(target=proxy.look, args=[port], daemon=True) for port in ports]
    threads.append(threading.Thread(target=proxy.serve_forever, daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        proxy.shutdown()
        proxy.server_close()
