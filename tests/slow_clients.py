"""Clients that connect to a site and then send nothing, half a header or half a body, and who is answered meanwhile."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.request import Request, urlopen

TOKEN = "c" * 32
IDLE = b""
HALF_HEADER = b"GET /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-Pro"
HALF_BODY = (
    "POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-Proto: https\r\n"
    f"Referer: https://127.0.0.1/\r\nCookie: csrftoken={TOKEN}; sessionid={'s' * 32}\r\n"
    f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 900\r\n\r\ncsrfmiddlewaretoken={TOKEN}&lo"
).encode()
"""With a cookie, because what comes without one is refused before anybody reads its body."""


@contextmanager
def clients(port: int, number: int, said: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that have sent this much, until the block ends."""
    with ExitStack() as ends:
        found = []
        for _ in range(number):
            client = ends.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            client.sendall(said)
            found.append(client)
        yield found


def longest_of_five(port: int) -> float:
    """Seconds of the slowest of five requests of a page, one after the other, on connections of their own."""
    return max(_seconds(port) for _ in range(5))


def _seconds(port: int) -> float:
    asked = Request(f"http://127.0.0.1:{port}/accounts/login/", headers={"X-Forwarded-Proto": "https"})
    began = time.perf_counter()
    with urlopen(asked, timeout=30) as answer:
        answer.read()
    return time.perf_counter() - began
