"""Checks whether a service answers on its socket, by a few bytes of its protocol, cheap enough for every command."""

import socket
import struct
from pathlib import Path

TIMEOUT = 5.0


def postgres_answers(path: Path) -> bool:
    """Return whether PostgreSQL accepts connections, which it does not while it starts or recovers."""
    # 196608 is version 3.0 of the protocol. R begins the server's reply to a login, X ends the connection.
    body = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
    return _probe_socket(path, struct.pack("!i", len(body) + 4) + body, b"R", b"X\0\0\0\4")


def redis_answers(path: Path) -> bool:
    """Return whether Redis answers PING, which it does not while it loads its file."""
    return _probe_socket(path, b"PING\r\n", b"+")


def _probe_socket(path: Path, question: bytes, expected: bytes, farewell: bytes = b"") -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        try:
            connection.connect(str(path))
            connection.sendall(question)
            # The first byte decides, so the rest is not waited for.
            answer = connection.recv(65536)
            connection.sendall(farewell)
        except OSError:
            return False
    return answer.startswith(expected)
